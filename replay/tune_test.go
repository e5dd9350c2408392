package replay

import (
	"fmt"
	"reflect"
	"testing"
)

// tuned is a report of recordings with a result for each policy: its dollars, where
// none costs 10, and how many of 100 identifiers and 100 lines it kept.
func tuned(policies []string, recordings ...[][3]int) *Report {
	rep := &Report{}
	for _, rec := range recordings {
		var r RecordingReport
		for i, p := range policies {
			r.Results = append(r.Results, Result{
				Policy: p, all: bought{dollars: float64(rec[i][0])}, noneAll: bought{dollars: 10},
				References: 100, ReferencesKept: rec[i][1], QuotedLines: 100, QuotedLinesKept: rec[i][2],
			})
		}
		rep.Recordings = append(rep.Recordings, r)
	}
	rep.total()
	return rep
}

func TestTune(t *testing.T) {
	policies := []string{"none", "a", "b", "c", "d"}
	rep := tuned(policies, [][3]int{{10, 100, 100}, {4, 90, 50}, {5, 96, 80}, {6, 96, 80}, {7, 99, 95}})
	for _, tt := range []struct {
		name string
		wish Wish
		want string
	}{
		{"95 and 75", Wish{}, "b"},
		{"nearly all lines", Wish{Lines: 0.9}, "d"},
		{"all lines", Wish{Lines: 1}, ""}, // none is not a choice
		{"hardly any", Wish{Names: 0.1, Lines: 0.1}, "a"},
		{"half of the money", Wish{Cost: 0.5}, "b"},
		{"little money", Wish{Cost: 0.1}, ""},
	} {
		if got := Tune(rep, tt.wish); got.Chosen != tt.want || got.Resamples != 0 {
			t.Errorf("%s: chose %q, %d resamples; want %q and none", tt.name, got.Chosen, got.Resamples, tt.want)
		}
		// Without a tuning the recommendation is the same.
		if i, fits := Recommend(rep.Totals, 0, tt.wish); fits != (tt.want != "") || fits && rep.Totals[i].Policy != tt.want {
			t.Errorf("%s: recommends result %d, fits %t; want %q", tt.name, i, fits, tt.want)
		}
	}
	var order, front []string
	for _, s := range Tune(rep, Wish{}).Settings {
		order = append(order, s.Policy)
		if s.Front {
			front = append(front, s.Policy)
		}
	}
	if want := []string{"a", "b", "c", "d", "none"}; !reflect.DeepEqual(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if want := []string{"a", "b", "d", "none"}; !reflect.DeepEqual(front, want) {
		t.Errorf("front %v, want %v", front, want)
	}
}

// Sure counts how many samples of the recordings lead to the same choice.
func TestTuneSure(t *testing.T) {
	policies := []string{"none", "a", "b"}
	alike := [][3]int{{10, 100, 100}, {4, 99, 99}, {5, 100, 100}}
	if got := Tune(tuned(policies, alike, alike, alike), Wish{}); got.Chosen != "a" || got.Sure != got.Resamples || got.Resamples != resamples {
		t.Errorf("recordings alike: %s in %d of %d", got.Chosen, got.Sure, got.Resamples)
	}
	odd := [][3]int{{10, 100, 100}, {4, 40, 40}, {5, 100, 100}} // where a keeps little
	rep := tuned(policies, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, alike, odd)
	got := Tune(rep, Wish{})
	if got.Chosen != "a" || got.Sure == 0 || got.Sure == got.Resamples {
		t.Errorf("one unlike the others: %s in %d of %d", got.Chosen, got.Sure, got.Resamples)
	}
	if again := Tune(rep, Wish{}); !reflect.DeepEqual(again, got) {
		t.Errorf("again: %+v, before %+v", again, got)
	}
}

// Settings with invalid requests or overflows are never chosen.
func TestTuneUnsound(t *testing.T) {
	rep := tuned([]string{"none", "a", "b", "c"}, [][3]int{{10, 100, 100}, {4, 99, 99}, {5, 99, 99}, {6, 99, 99}})
	rep.Recordings[0].Results[1].InvalidRequests = 1
	rep.Recordings[0].Results[2].Overflows = 1
	if got := Tune(rep, Wish{}).Chosen; got != "c" {
		t.Errorf("chose %q, want c", got)
	}
	if got := Tune(new(Report), Wish{}); got.Chosen != "" || len(got.Settings) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

// A policy is recommended by the cost of all requests, including those over the
// window: one that leaves out many is not cheap. Where the recording itself does not
// fit, a dearer policy that fits is a choice too.
func TestRecommend(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	all := Result{Policy: none, CostShare: x(1), References: 100, ReferencesKept: 100, QuotedLines: 100, QuotedLinesKept: 100}
	result := func(policy string, share float64, names, lines int) Result {
		return Result{Policy: policy, CostShare: x(share), References: 100, ReferencesKept: names, QuotedLines: 100, QuotedLinesKept: lines}
	}
	over := func(r Result, overflows, impossible int) Result {
		r.Overflows, r.Impossible = overflows, impossible
		return r
	}
	refused := result("refused", 0.1, 100, 100)
	refused.InvalidRequests = 1
	for _, tt := range []struct {
		name    string
		results []Result
		wish    Wish
		want    string
	}{
		{"the cheapest that keeps enough", []Result{all, result("a", 0.5, 94, 90), result("b", 0.6, 96, 74), result("c", 0.7, 96, 76)}, Wish{}, "c true"},
		{"the closest", []Result{all, result("a", 0.5, 50, 50), result("b", 0.6, 94, 70), result("c", 1.2, 99, 99)}, Wish{}, "b false"},
		{"unsound ones", []Result{all, refused, over(result("over", 0.1, 100, 100), 1, 0), result("c", 0.9, 96, 76)}, Wish{}, "c true"},
		{"half a percent", []Result{all, result("a", 0.996, 100, 100)}, Wish{}, "-1 false"},
		{"only the recording", []Result{all}, Wish{}, "-1 false"},
		{"nothing", nil, Wish{}, "-1 false"},
		{"the recording does not fit", []Result{over(all, 9, 0), over(result("a", 1.1, 99, 99), 0, 2)}, Wish{}, "a true"},
		{"neither fits", []Result{over(all, 0, 2), over(result("a", 1.1, 99, 99), 0, 2)}, Wish{}, "-1 false"},
		{"among", []Result{all, result("a", 0.5, 99, 99), result("b", 0.6, 99, 99)}, Wish{Among: []string{"b"}}, "b true"},
		{"no measures", []Result{{Policy: none, CostShare: x(1)}, {Policy: "a", CostShare: x(0.5)}}, Wish{}, "a true"},
		{"most for the money", []Result{all, result("a", 0.5, 99, 60), result("b", 0.7, 80, 70), result("c", 0.9, 99, 99)}, Wish{Cost: 0.8}, "b true"},
		{"too little money", []Result{all, result("a", 0.5, 99, 60), result("b", 0.4, 80, 70)}, Wish{Cost: 0.3}, "b false"},
	} {
		i, fits := Recommend(tt.results, 0, tt.wish)
		got := fmt.Sprintf("%d %t", i, fits)
		if i >= 0 {
			got = fmt.Sprintf("%s %t", tt.results[i].Policy, fits)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	twice := []Result{all, {Policy: "a"}, result("a", 0.5, 99, 99)} // a report that was put together by hand
	if i, _ := Recommend(twice, 0, Wish{}); i != 2 {
		t.Errorf("of two results of a policy, number %d was chosen, which has no cost", i)
	}
}
