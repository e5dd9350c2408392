package replay

import (
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
				Policy: p, dollars: float64(rec[i][0]), noneDollars: 10,
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
