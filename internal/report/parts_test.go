package report

import (
	"math"
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

func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-1e6, 1e6).Draw(t, "lo")
		s := scale{lo, lo + rapid.Float64Range(1e-6, 1e7).Draw(t, "width")}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		ticks := s.ticks(n)
		if len(ticks) > n+1 {
			t.Errorf("%d ticks, asked for %d", len(ticks), n)
		}
		slack := (s.hi - s.lo) * 1e-6
		for i, v := range ticks {
			if v < s.lo-slack || v > s.hi+slack {
				t.Errorf("tick %v outside %v", v, s)
			}
			if i > 0 && v <= ticks[i-1] {
				t.Errorf("ticks %v do not rise", ticks)
			}
		}
	})
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

// A line far above the window does not press the others to the ground.
func TestChartEndsAboveTheWindow(t *testing.T) {
	results := []replay.Result{
		{Policy: none, Series: []replay.Series{{Window: 32_000, Points: []replay.Point{{Tokens: 10_000}, {Tokens: 190_000, Refused: true}}}}},
		{Policy: "auto", Series: []replay.Series{{Window: 32_000, Points: []replay.Point{{Tokens: 10_000}, {Tokens: 28_000}}}}},
	}
	keys := map[string]key{none: {Policy: none, Name: none}, "auto": {Policy: "auto", Name: "auto", Index: 1}}
	c := newChart("c", "title", &replay.RecordingReport{}, results, keys, "auto")
	if c.Top > 80_000 || c.Top < 60_000 || c.Window == nil {
		t.Errorf("the axis ends at %v, window %v", c.Top, c.Window)
	}
	if end := c.Lines[0].End; end.Y != 0 || end.Value != "190k ↑" {
		t.Errorf("the line of none ends at %+v", end)
	}
	if end := c.Lines[1].End; end.Y < plotHeight/4 || end.Y > plotHeight*3/4 {
		t.Errorf("the line of auto ends at %+v", end)
	}
	if !strings.Contains(c.Sub, "the picture ends at 64k") {
		t.Errorf("not said: %s", c.Sub)
	}
}

// Names at the ends of lines and at points do not lie on one another.
func TestLabelsKeepApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var results []replay.Result
		keys := make(map[string]key)
		for i := range rapid.IntRange(1, 10).Draw(t, "policies") {
			ratio := float64(rapid.IntRange(50, 130).Draw(t, "ratio")) / 100
			policy := strings.Repeat("p", 4+i)
			keys[policy] = key{Policy: policy, Name: policy, Index: i}
			points := []replay.Point{{Tokens: rapid.IntRange(0, 200_000).Draw(t, "first")}, {Tokens: rapid.IntRange(0, 200_000).Draw(t, "last")}}
			results = append(results, replay.Result{Policy: policy, CostRatio: &ratio, References: 100,
				ReferencesKept: rapid.IntRange(60, 100).Draw(t, "kept"), Series: []replay.Series{{Points: points}}})
		}
		s := newScatter("", "", results, keys, "", func(r *replay.Result) (int, int) { return r.ReferencesKept, r.References })
		for i := range s.Dots {
			for j := range s.Dots[:i] {
				a, b := labelBox(&s.Dots[i]), labelBox(&s.Dots[j])
				if a.overlaps(b) {
					t.Errorf("%s lies on %s", s.Dots[i].Key.Name, s.Dots[j].Key.Name)
				}
			}
		}
		c := newChart("c", "title", &replay.RecordingReport{}, results, keys, "")
		for i := range c.Lines {
			for j := range c.Lines[:i] {
				if d := c.Lines[i].End.LabelY - c.Lines[j].End.LabelY; d < labelRoom && d > -labelRoom {
					t.Errorf("labels of lines %d and %d are %d apart", i, j, d)
				}
			}
		}
	})
}

func labelBox(d *dot) box {
	p := spot{dx: d.DX, dy: d.DY - 4, anchor: d.Anchor}
	return p.box(d, d.width())
}

// On the line of the best lies each policy that no other beats in both cost
// and what is kept, and only those.
func TestFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var results []replay.Result
		keys := make(map[string]key)
		for i := range rapid.IntRange(1, 9).Draw(t, "policies") {
			ratio := float64(rapid.IntRange(50, 60).Draw(t, "ratio")) / 50
			policy := string(rune('a' + i))
			keys[policy] = key{Policy: policy, Name: policy}
			results = append(results, replay.Result{Policy: policy, CostRatio: &ratio, References: 10, ReferencesKept: rapid.IntRange(0, 10).Draw(t, "kept")})
		}
		s := newScatter("", "", results, keys, "", func(r *replay.Result) (int, int) { return r.ReferencesKept, r.References })
		for i := range s.Dots {
			beaten, twin := false, false
			for j := range s.Dots {
				a, b := &s.Dots[i], &s.Dots[j]
				if b.cost <= a.cost && b.kept >= a.kept && (b.cost < a.cost || b.kept > a.kept) {
					beaten = true
				}
				twin = twin || i != j && a.cost == b.cost && a.kept == b.kept && b.Dominant
			}
			if got := s.Dots[i].Dominant; got && beaten || !got && !beaten && !twin {
				t.Errorf("policy %d: on the line %v, beaten %v", i, got, beaten)
			}
		}
	})
}

func TestBest(t *testing.T) {
	x := func(f float64) *float64 { return &f }
	good := replay.Result{Policy: "good", CostRatio: x(0.7), References: 100, ReferencesKept: 96}
	cases := []struct {
		name    string
		results []replay.Result
		want    int
	}{
		{"none at all", nil, -1},
		{"the cheapest that keeps enough", []replay.Result{{Policy: "dear", CostRatio: x(0.9), References: 100, ReferencesKept: 100}, good, {Policy: "forgetful", CostRatio: x(0.2), References: 100, ReferencesKept: 94}}, 1},
		{"not policy none", []replay.Result{{Policy: none, CostRatio: x(0.5)}}, -1},
		{"not what does not fit", []replay.Result{{Policy: "p", CostRatio: x(0.5), Overflows: 1}, good}, 1},
		{"not what is refused", []replay.Result{{Policy: "p", CostRatio: x(0.5), InvalidRequests: 1}, good}, 1},
		{"not what cannot be compared", []replay.Result{{Policy: "p"}}, -1},
		{"not for a rounding", []replay.Result{{Policy: "p", CostRatio: x(0.999)}}, -1},
		{"without references all are kept", []replay.Result{{Policy: "p", CostRatio: x(0.5)}}, 0},
	}
	for _, c := range cases {
		if got := Best(c.results); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
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
