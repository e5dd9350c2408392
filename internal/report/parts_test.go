package report

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/replay"
)

func TestClean(t *testing.T) {
	cases := []struct {
		in, want string
		most     int
	}{
		{"plain text", "plain text", 100},
		{"two\nlines\tand a tab", "two lines and a tab", 100},
		{"red \x1b[31m", "red <U+001B>[31m", 100},
		{"turn\u202eback", "turn<U+202E>back", 100},
		{"isolate\u2067x\u2069", "isolate<U+2067>x<U+2069>", 100},
		{"nul\x00", "nul<U+0000>", 100},
		{"bad\xffutf8", "bad\uFFFDutf8", 100},
		{"line\u2028separator", "line<U+2028>separator", 100},
		{"abcdefghij", "abc…hij", 7},
		{"ünïcödé", "ün…dé", 5},
		{"<b>", "<b>", 100},
	}
	for _, c := range cases {
		if got := clean(c.in, c.most); got != c.want {
			t.Errorf("clean(%q, %d) = %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4321: "−4,321"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 950: "950", 999.7: "1k", 12_400: "12.4k", 99_960: "100k", 180_400: "180k", 999_600: "1M", 1_050_000: "1.05M", 274_088_115: "274M", 3.2e9: "3,200M"} {
		if got := short(n); got != want {
			t.Errorf("short(%v) = %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "$0", 0.0001: "<$0.001", 0.0123: "$0.012", 9.599: "$9.60", 276.26: "$276.26", 12345.6: "$12,346", math.Inf(1): "–"} {
		if got := dollars(x); got != want {
			t.Errorf("dollars(%v) = %s, want %s", x, got, want)
		}
	}
	for _, c := range []struct {
		part, whole int
		want        string
	}{{1, 0, "–"}, {0, 5, "0.0%"}, {5, 5, "100%"}, {9999, 10000, ">99.9%"}, {1, 100_000, "<0.1%"}, {191, 209, "91.4%"}} {
		if got := share(c.part, c.whole); got != c.want {
			t.Errorf("share(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}

// Thinning keeps both ends and every extreme of the whole.
func TestThin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 200_000), 1, 3000).Draw(t, "sizes")
		most := rapid.IntRange(2, 400).Draw(t, "most")
		points := make([]replay.Point, len(sizes))
		lo, hi := sizes[0], sizes[0]
		for i, n := range sizes {
			points[i].Tokens = n
			lo, hi = min(lo, n), max(hi, n)
		}
		kept := thin(points, most)
		if len(kept) > max(most+2, 2) || kept[0] != 0 || kept[len(kept)-1] != len(points)-1 {
			t.Fatalf("kept %d of %d, asked for %d; first %d, last %d", len(kept), len(points), most, kept[0], kept[len(kept)-1])
		}
		gotLo, gotHi := points[kept[0]].Tokens, points[kept[0]].Tokens
		for i, k := range kept {
			if i > 0 && k <= kept[i-1] {
				t.Fatalf("not in order: %v", kept)
			}
			gotLo, gotHi = min(gotLo, points[k].Tokens), max(gotHi, points[k].Tokens)
		}
		if gotLo != lo || gotHi != hi {
			t.Errorf("kept %d to %d of %d to %d", gotLo, gotHi, lo, hi)
		}
	})
}

// A line far above the window does not flatten the others.
func TestChartEndsAboveTheWindow(t *testing.T) {
	cases := []struct {
		name             string
		window, largest  int
		top, drawnWindow int
		sub              string
	}{
		{"far above", 32_000, 190_000, 64_000, 32_000, ", chart cut at 64k"},
		{"a little above", 32_000, 40_000, 41_600, 32_000, ""},
		{"below", 32_000, 20_000, 33_280, 32_000, ""},
		{"far below", 200_000, 20_000, 20_800, 0, ""},
		{"no window", 0, 20_000, 20_800, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			results := []replay.Result{
				{Policy: none, Series: []replay.Series{{Window: c.window, Points: []replay.Point{{Tokens: 10_000}, {Tokens: c.largest}}}}},
			}
			got := newChart("c", "title", &replay.RecordingReport{}, results, map[string]key{none: {Policy: none}}, "")
			if got.Timeline.Top != c.top || got.Timeline.Window != c.drawnWindow {
				t.Errorf("the axis ends at %d with window %d, want %d with %d", got.Timeline.Top, got.Timeline.Window, c.top, c.drawnWindow)
			}
			if !strings.HasSuffix(got.Sub, c.sub) {
				t.Errorf("%q does not end with %q", got.Sub, c.sub)
			}
		})
	}
}

// The embedded lines give back what the recording has, as long as it is not
// thinned: sizes, requests that do not fit, reductions.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) replay.Point {
			p := replay.Point{Tokens: rapid.IntRange(0, 300_000).Draw(t, "tokens"), Refused: rapid.Bool().Draw(t, "refused")}
			if rapid.Bool().Draw(t, "reduced") {
				p.Reduced, p.Freed = []string{rapid.SampledFrom([]string{"mask", "clear"}).Draw(t, "stage")}, rapid.IntRange(0, 9).Draw(t, "freed")
			}
			return p
		}), 1, 200).Draw(t, "points")
		l := newLine(key{}, points)
		got := make([]replay.Point, len(l.Tokens))
		tokens, request := 0, 0
		for i, d := range l.Tokens {
			tokens += d
			got[i].Tokens = tokens
		}
		for _, run := range l.Refused {
			for i := run[0]; i <= run[1]; i++ {
				got[i].Refused = true
			}
		}
		for i := 0; i < len(l.Reductions); i += 3 {
			request += l.Reductions[i]
			got[request-1].Freed, got[request-1].Reduced = l.Reductions[i+1], []string{l.Stages[l.Reductions[i+2]]}
		}
		if !reflect.DeepEqual(got, points) {
			t.Fatalf("got  %v\nwant %v", got, points)
		}
	})
}

// A long line has bounded data: at most one reduction for each stretch, the
// largest one.
func TestLongLine(t *testing.T) {
	points := make([]replay.Point, 5*maxPoints)
	for i := range points {
		points[i] = replay.Point{Tokens: i, Refused: i%2 == 0, Reduced: []string{strconv.Itoa(i)}, Freed: i % 5}
	}
	l := newLine(key{}, points)
	if len(l.Tokens) > maxPoints+2 || len(l.X) != len(l.Tokens) || len(l.Reductions) != 3*maxPoints || len(l.Stages) != maxStages || l.Count != len(points) {
		t.Errorf("%d points at %d requests, %d reductions, %d stages, count %d", len(l.Tokens), len(l.X), len(l.Reductions)/3, len(l.Stages), l.Count)
	}
	request := 0
	for i := 0; i < len(l.Reductions); i += 3 {
		request += l.Reductions[i]
		if p := points[request-1]; p.Freed != 4 || l.Reductions[i+1] != 4 {
			t.Fatalf("request %d: freed %d, embedded as %d, want the largest of its stretch", request, p.Freed, l.Reductions[i+1])
		}
	}
	sum := 0
	for i, d := range l.X {
		if sum += d; d < 1 {
			t.Fatalf("point %d: request %d after %d", i, sum, sum-d)
		}
	}
	if sum != len(points) {
		t.Errorf("the last point is of request %d, want %d", sum, len(points))
	}
}

// On the front is each policy that no other beats in cost and in what stays
// visible, and only those.
func TestFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var results []replay.Result
		keys := make(map[string]key)
		for i := range rapid.IntRange(1, 9).Draw(t, "policies") {
			ratio := float64(rapid.IntRange(50, 60).Draw(t, "ratio")) / 50
			policy := string(rune('a' + i))
			keys[policy] = key{Policy: policy, Name: policy}
			results = append(results, replay.Result{Policy: policy, CostShare: &ratio, References: 10, ReferencesKept: rapid.IntRange(0, 10).Draw(t, "kept")})
		}
		s := newScatter("", results, keys, "", func(r *replay.Result) (int, int) { return r.ReferencesKept, r.References })
		for i := range s.Dots {
			if i > 0 && s.Dots[i].Cost < s.Dots[i-1].Cost {
				t.Fatal("not by rising cost")
			}
			beaten, twin := false, false
			for j := range s.Dots {
				a, b := &s.Dots[i], &s.Dots[j]
				if b.Cost <= a.Cost && b.Kept >= a.Kept && (b.Cost < a.Cost || b.Kept > a.Kept) {
					beaten = true
				}
				twin = twin || i != j && a.Cost == b.Cost && a.Kept == b.Kept && b.Front
			}
			if got := s.Dots[i].Front; got && beaten || !got && !beaten && !twin {
				t.Errorf("policy %d: on the front %v, beaten %v", i, got, beaten)
			}
		}
	})
}

func TestPlaces(t *testing.T) {
	p := newPlaces([]string{"/home/mira/a/one.jsonl", "/home/mira/a/two.jsonl", "/home/mira/b/one.jsonl"})
	if got := p.name("/home/mira/a/two.jsonl"); got != "a/two.jsonl" {
		t.Errorf("got %q", got)
	}
	if got := newPlaces([]string{"/only/one.jsonl"}).name("/only/one.jsonl"); got != "/only/one.jsonl" {
		t.Errorf("a single file: got %q", got)
	}
}
