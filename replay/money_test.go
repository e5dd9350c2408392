package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/token"
)

// ledger is the session that most sums are computed for. Sizes in tokens:
//
//	instructions  100
//	u1            100   96 words
//	                        request 1, 0 s:   200
//	a1             45   call: 4 + 1 (read) + 5 (arguments) + 35
//	r1            200   result: 4 + 161 words + 35
//	                        request 2, 60 s:  445
//	a2, r2        245   the same again
//	                        request 3, 120 s: 690
//	a3             50   46 words
//	u2            100
//	                        request 4, 600 s: 840
//	a4             50
func ledger(t testing.TB, model string) *tape {
	b := newTape(t, model, furl.FormatAnthropic)
	b.preamble(words(96))
	b.user(words(96))
	b.asks("0s")
	b.calls("c1", "read", `{"path":"src"}`)
	b.result("c1", words(161))
	b.asks("60s")
	b.calls("c2", "read", `{"path":"lib"}`)
	b.result("c2", words(161))
	b.asks("120s")
	b.says(words(46))
	b.user(words(96))
	b.asks("600s")
	b.says(words(46))
	return b
}

// want is what a test expects of a result. Zero fields are not compared.
type want struct {
	requests, sent, peak         int
	overflows, impossible        int
	backstops, breaks            int
	reductions                   int
	write, read, fresh, out, own float64 // tokens at the toy's prices
	ratio                        string
}

func (w want) check(t *testing.T, r *Result) {
	t.Helper()
	got := fmt.Sprintf("requests %d sent %d peak %d overflows %d impossible %d backstops %d breaks %d reductions %d",
		r.Requests, r.TokensSent, r.Peak, r.Overflows, r.Impossible, r.Backstops, r.CacheBreaks, r.Reductions)
	want := fmt.Sprintf("requests %d sent %d peak %d overflows %d impossible %d backstops %d breaks %d reductions %d",
		w.requests, w.sent, w.peak, w.overflows, w.impossible, w.backstops, w.breaks, w.reductions)
	if got != want {
		t.Errorf("%s: %s\nwant %s", r.Policy, got, want)
	}
	split := CostSplit{CacheWrite: w.write * 1.25, CacheRead: w.read * 0.1, Fresh: w.fresh, Output: w.out * 5, Own: w.own}
	split.CacheWrite, split.CacheRead, split.Fresh, split.Output = split.CacheWrite/1000, split.CacheRead/1000, split.Fresh/1000, split.Output/1000
	if got, want := fmt.Sprintf("%.6f", r.Split), fmt.Sprintf("%.6f", split); got != want {
		t.Errorf("%s: split %s\nwant %s", r.Policy, got, want)
	}
	if r.Cost == nil {
		t.Errorf("%s: no cost", r.Policy)
	} else if got, want := money(*r.Cost), money(split.Input()+split.Output); got != want {
		t.Errorf("%s: cost %s, want %s", r.Policy, got, want)
	}
	if w.ratio != "" && (r.CostRatio == nil || fmt.Sprintf("%.6f", *r.CostRatio) != w.ratio) {
		t.Errorf("%s: ratio %v, want %s", r.Policy, r.CostRatio, w.ratio)
	}
}

// Each request reads the cache entry of the previous one, except the last, which
// is eight minutes later. Masking r1 before request 3 leaves 545 of 690 tokens;
// that request reads up to u1, where request 1 ended.
func TestRunBills(t *testing.T) {
	mask := script{3: hide(2, "[gone]", 20)}
	rep := play(t, Options{Candidates: append(presets(t, "none"), mask.candidate("mask"))}, ledger(t, "toy").recording())
	results := rep.Recordings[0].Results
	want{
		requests: 4, sent: 200 + 445 + 690 + 840, peak: 840,
		write: 200 + 245 + 245 + 840, read: 200 + 445, out: 45 + 45 + 50 + 50,
		ratio: "1.000000",
	}.check(t, &results[0])
	// Input of none: 1,530 written at 1.25, 645 read at 0.1: $1.977.
	// With the mask: 1,485 written, 400 read: $1.89625.
	want{
		requests: 4, sent: 200 + 445 + 545 + 695, peak: 695, breaks: 1, reductions: 1,
		write: 200 + 245 + 345 + 695, read: 200 + 200, out: 45 + 45 + 50 + 50,
		ratio: "0.959155",
	}.check(t, &results[1])
	if got := rep.Recordings[0]; got.EstimatedPeak != 840 || got.ReportedPeak != 0 || got.Requests != 4 || got.Messages != 8 || got.Model != "toy" {
		t.Errorf("recording: %+v", got)
	}
	series := results[1].Series[0].Points
	if len(series) != 4 || series[2].Tokens != 545 || series[2].Read != 200 || fmt.Sprint(series[2].Reduced) != "[mask]" {
		t.Errorf("series: %+v", series)
	}
}

// The size that a provider reported is the size under policy none. Parts that are
// not among the messages are sent under every policy.
func TestRunAnchorsToReports(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s", furl.Usage{Input: 5, CacheWrite: 2995, Output: 45})
	b.calls("c1", "read", `{"path":"src"}`)
	b.result("c1", words(161))
	b.asks("60s", furl.Usage{Input: 5, CacheRead: 3000, CacheWrite: 240, Output: 50})
	b.says(words(46))
	mask := script{2: hide(2, "[gone]", 20)}
	rep := play(t, Options{Candidates: append(presets(t, "none"), mask.candidate("mask"))}, b.recording())
	none, masked := rep.Recordings[0].Results[0], rep.Recordings[0].Results[1]
	if none.TokensSent != 3000+3245 || none.Peak != 3245 || rep.Recordings[0].ReportedPeak != 3245 {
		t.Errorf("none sent %d tokens, at most %d; %d were reported", none.TokensSent, none.Peak, rep.Recordings[0].ReportedPeak)
	}
	if saved := none.TokensSent - masked.TokensSent; saved < 140 || saved > 160 {
		t.Errorf("masking 145 tokens saved %d", saved)
	}
}

// A request over the window is counted, costs nothing, and is part of neither side
// of the ratio.
func TestRunOverflows(t *testing.T) {
	// The window of 600 leaves a room of 540. Before request 3 the backstop
	// hides a1 and r1 by a marker: 690 - 245 + 4 + 14 = 463. At request 4
	// that is 613, and a2 with r2 and a3 go, too.
	backstop := policy.Pipeline{Label: "backstop", Trigger: func(*furl.View, furl.Budget) bool { return false }}
	rep := play(t, Options{Candidates: append(presets(t, "none"), Fixed(&backstop)), Windows: []int{600}}, ledger(t, "toy").recording())
	none, held := &rep.Recordings[0].Results[0], &rep.Recordings[0].Results[1]
	want{
		requests: 4, sent: 200 + 445, peak: 445, overflows: 2,
		write: 200 + 245, read: 200, out: 45 + 45, ratio: "1.000000",
	}.check(t, none)
	if held.Overflows != 0 || held.Impossible != 0 || held.Backstops != 2 || held.Reductions != 2 {
		t.Errorf("with the backstop: %+v", held)
	}
	if got := held.Series[0].Points[2].Tokens; got != 463 {
		t.Errorf("request 3 had %d tokens, want 463", got)
	}
	if *held.CostRatio != 1 {
		t.Errorf("ratio %v over the two requests that both could send, want 1", *held.CostRatio)
	}
	// The requests over the window are priced apart. All rows are shares of what
	// the session costs without a window, $2.927.
	if got := money(*none.Total()); got != "2.927000" || money(none.OverflowCost) != money(2.927-*none.Cost) || *none.CostShare != 1 {
		t.Errorf("none costs $%s in all, $%v over the window, share %v", got, none.OverflowCost, *none.CostShare)
	}
	if held.OverflowCost != 0 || money(*held.CostShare) != money(*held.Cost/2.927) {
		t.Errorf("with the backstop: $%v over the window, share %v of cost %v", held.OverflowCost, *held.CostShare, *held.Cost)
	}
}

// Requests that no policy can reduce to fit are impossible. Requests that leave
// less room for the reply than usual are sent.
func TestRunImpossible(t *testing.T) {
	for _, tt := range []struct {
		words                            int
		overflows, impossible, backstops int
	}{
		{400, 0, 0, 0},
		{560, 0, 0, 0}, // 564: above the room of 540, within the window
		{700, 0, 1, 0},
	} {
		b := newTape(t, "toy", furl.FormatAnthropic)
		b.user(words(tt.words))
		b.asks("0s")
		b.says("done")
		for _, r := range play(t, Options{Windows: []int{600}}, b.recording()).Totals {
			overflows, impossible := tt.overflows, tt.impossible
			if r.Policy == "none" {
				overflows, impossible = tt.impossible, 0 // it does not look
			}
			if r.Overflows != overflows || r.Impossible != impossible || r.Backstops != tt.backstops {
				t.Errorf("%d words, %s: %d overflows, %d impossible, %d backstops", tt.words, r.Policy, r.Overflows, r.Impossible, r.Backstops)
			}
			if sendable := r.TokensSent > 0; sendable != (tt.impossible == 0) {
				t.Errorf("%d words, %s: sent %d tokens", tt.words, r.Policy, r.TokensSent)
			}
		}
	}
}

// Without a price, the cost is null and the ratio compares tokens. Nothing is
// cached or reduced.
func TestRunUnknownModel(t *testing.T) {
	mask := script{3: hide(2, "[gone]", 20)}
	rep := play(t, Options{Candidates: append(presets(t, "none", "sliding-window"), mask.candidate("mask"))}, ledger(t, "no-such-model").recording())
	for i, sent := range []int{2175, 2175, 1885} {
		r := &rep.Totals[i]
		if r.Cost != nil || r.Split != (CostSplit{}) || r.CacheBreaks != 0 || r.TokensSent != sent {
			t.Errorf("%s: cost %v, split %v, %d breaks, %d tokens sent, want %d", r.Policy, r.Cost, r.Split, r.CacheBreaks, r.TokensSent, sent)
		}
		if got, want := money(*r.CostRatio), money(float64(sent)/2175); got != want {
			t.Errorf("%s: ratio %s, want %s", r.Policy, got, want)
		}
	}
	if rep.Totals[1].Reductions != 0 {
		t.Error("sliding-window acted without a window")
	}
	notes := strings.Join(rep.Recordings[0].Notes, "\n")
	if !strings.Contains(notes, "no-such-model") {
		t.Errorf("no note about the model: %q", notes)
	}
}

// Prices in the options replace those of the catalogue. Cached tokens are not free
// if their price is not given.
func TestRunPriceOverrides(t *testing.T) {
	half, double := 0.5, 2.0
	for _, tt := range []struct {
		name  string
		model string
		o     Options
		want  CostSplit
	}{
		{"prices", "toy", Options{Prices: furl.Prices{Input: 2000, Output: 1000}},
			CostSplit{CacheWrite: 1530 * 2000e-6, CacheRead: 645 * 2000e-6, Output: 190 * 1000e-6}},
		{"multiples", "toy", Options{CacheRead: &half, CacheWrite: &double},
			CostSplit{CacheWrite: 1530 * 2000e-6, CacheRead: 645 * 500e-6, Output: 190 * 5000e-6}},
		{"both", "toy", Options{Prices: furl.Prices{Input: 2000}, CacheRead: &half},
			CostSplit{CacheWrite: 1530 * 2000e-6, CacheRead: 645 * 1000e-6}},
		{"of an unknown model: nothing is cached", "no-such-model", Options{Prices: furl.Prices{Input: 1000}},
			CostSplit{Fresh: 2175 * 1000e-6}},
		// With a price for cache reads, it caches as its wire format does: from
		// 1,024 tokens on, which these requests do not have.
		{"of an unknown model, cached", "no-such-model", Options{Prices: furl.Prices{Input: 1000}, CacheRead: &half},
			CostSplit{Fresh: 2175 * 1000e-6}},
		{"another model's", "no-such-model", Options{Model: "toy"},
			CostSplit{CacheWrite: 1530 * 1250e-6, CacheRead: 645 * 100e-6, Output: 190 * 5000e-6}},
	} {
		tt.o.Candidates = presets(t, "none")
		r := play(t, tt.o, ledger(t, tt.model).recording()).Totals[0]
		if got, want := fmt.Sprintf("%.6f", r.Split), fmt.Sprintf("%.6f", tt.want); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
	}
}

// With a price for cache reads, an unknown model caches like most models of its
// wire format: explicitly for Anthropic, automatically for OpenAI.
func TestRunUnknownModelCaches(t *testing.T) {
	tenth := 0.1
	for wire, want := range map[furl.Format]CostSplit{
		// 2,004 written, 2,004 read, 5 + 4 + 54 tokens more.
		furl.FormatAnthropic: {CacheWrite: (2004 + 58) * 1000e-6, CacheRead: 2004 * 100e-6},
		// 1,920 of them in steps of 128.
		furl.FormatChat: {Fresh: (2004 + 84 + 58) * 1000e-6, CacheRead: 1920 * 100e-6},
	} {
		b := newTape(t, "no-such-model", wire)
		b.user(words(2000))
		b.asks("0s")
		b.says("done")    // 5
		b.user(words(49)) // 53
		b.asks("10s")
		b.says("done")
		o := Options{Candidates: presets(t, "none"), Prices: furl.Prices{Input: 1000}, CacheRead: &tenth}
		if got := play(t, o, b.recording()).Totals[0].Split; fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", want) {
			t.Errorf("%s: %.6f, want %.6f", wire, got, want)
		}
	}
}

// The output of a reply is what was reported. Without a reported prompt it is estimated if it is
// that of an unfinished reply; else the report has both.
func TestRunOutput(t *testing.T) {
	for _, tt := range []struct {
		usage           furl.Usage
		want, estimated float64
	}{
		{furl.Usage{}, 104, 104},
		{furl.Usage{Output: 130}, 130, 130},
		{furl.Usage{Output: 3}, 104, 104},
		{furl.Usage{Input: 500, Output: 130}, 130, 130},
		{furl.Usage{Input: 500, Output: 3}, 3, 104},
	} {
		b := newTape(t, "toy", furl.FormatAnthropic)
		for range 3 { // counts of earlier replies must not pile up
			b.user(words(50))
			b.asks("0s", tt.usage)
			b.says(words(100))
			if tt.usage.Input > 0 {
				tt.usage.Input += 54 + 104 // what the prompt grows by
			}
		}
		rep := play(t, Options{Candidates: presets(t, "none")}, b.recording())
		if got, want := rep.Totals[0].Split.Output, 3*tt.want*5e-3; got < want*0.97 || got > want*1.03 {
			t.Errorf("%+v: output cost %v, want about %v", tt.usage, got, want)
		}
		if got, want := float64(rep.Recordings[0].OutputEstimated), 3*tt.estimated; got < want*0.97 || got > want*1.03 {
			t.Errorf("%+v: %v tokens estimated, want about %v", tt.usage, got, want)
		}
	}
}

// Automatic caches bill tokens that are not read as uncached input. In OpenAI's format a
// call or a result costs 12 tokens beyond its words: u1 100, a1 22, r1 177,
// a2 22, r2 177, a3 50, u2 100.
func TestRunAutomaticCache(t *testing.T) {
	b := newTape(t, "toy-auto", furl.FormatChat)
	b.user(words(96))
	b.asks("0s") // 100: below the minimum
	b.calls("c1", "read", `{"path":"src"}`)
	b.result("c1", words(161))
	b.asks("60s") // 299: shares 100, which is below the minimum
	b.calls("c2", "read", `{"path":"lib"}`)
	b.result("c2", words(161))
	b.asks("120s") // 498: shares 299, of which 256 in steps of 64
	b.says(words(46))
	r := play(t, Options{Candidates: presets(t, "none")}, b.recording()).Totals[0]
	want := CostSplit{Fresh: (100 + 299 + 242) * 1000e-6, CacheRead: 256 * 500e-6, Output: (22 + 22 + 50) * 5000e-6}
	if got, want := fmt.Sprintf("%.6f", r.Split), fmt.Sprintf("%.6f", want); got != want {
		t.Errorf("split %s, want %s", got, want)
	}
}

// If the provider drops thinking after the next user message, the prompt after it
// has to be written to the cache again. u1 100; a1 with 50 tokens of thinking and a call
// 95; r1 200; a2 50; u2 100.
func TestRunThinkingIsDropped(t *testing.T) {
	for _, tt := range []struct {
		model                string
		tokens, read, breaks int // of request 3
	}{
		{"toy", 545, 395, 0},
		{"toy-forgets", 495, 100, 1},
	} {
		b := newTape(t, tt.model, furl.FormatAnthropic)
		b.user(words(96))
		b.asks("0s")
		b.message(furl.RoleAssistant,
			furl.Block{Kind: furl.KindThinking, Text: words(46)},
			furl.Block{Kind: furl.KindCall, ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"src"}`)})
		b.result("c1", words(161))
		b.asks("10s") // 395 on both
		b.says(words(46))
		b.user(words(96))
		b.asks("20s")
		b.says("done")
		r := play(t, Options{Candidates: presets(t, "none")}, b.recording()).Recordings[0].Results[0]
		points := r.Series[0].Points
		if points[1].Tokens != 395 || points[2].Tokens != tt.tokens || points[2].Read != tt.read || r.CacheBreaks != tt.breaks {
			t.Errorf("%s: %+v with %d breaks, want %+v", tt.model, points, r.CacheBreaks, tt)
		}
	}
}

// Another model starts with an empty cache. The first one finds its entries: u1 100,
// a1 50, u2 100, a2 50, u3 100.
func TestRunModelSwitch(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s")
	b.says(words(46))
	b.user(words(96))
	b.s.Model = "toy-forgets"
	b.asks("10s")
	b.says(words(46))
	b.user(words(96))
	b.s.Model = "toy"
	b.asks("20s")
	b.says(words(46))
	want{
		requests: 3, sent: 100 + 250 + 400, peak: 400,
		write: 100 + 250 + 300, read: 100, out: 150, ratio: "1.000000",
	}.check(t, &play(t, Options{Candidates: presets(t, "none")}, b.recording()).Totals[0])
}

// asker requests a summary before request 3 and shows it for everything except the
// newest step, or discards it.
type asker struct {
	z     policy.Summarizer
	n     int
	waste bool
	got   policy.Summary
}

func (*asker) Name() string { return "asker" }

func (p *asker) Plan(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	v := s.View(b.Model)
	plan := &furl.Plan{Before: b.Size, After: b.Size, View: v}
	if p.n++; p.n != 3 {
		return plan, nil
	}
	var err error
	units := v.Units[:2] // u1; a1 with r1
	if p.got, err = p.z.Summarize(ctx, policy.SummaryRequest{View: v, Hide: units, Budget: b}); err != nil || p.waste {
		return plan, err
	}
	m := furl.TextMessage(furl.RoleUser, p.got.Text)
	m.Measure(b.Counter)
	plan.Reductions = []*furl.Reduction{{
		Stage: "compact", Items: []furl.Item{{Spans: v.Spans(units...), Show: furl.Mark{Messages: []*furl.Message{m}}}},
		Summary: &furl.Summary{Number: 1, Text: p.got.Text, Usage: p.got.Usage},
	}}
	after, err := s.With(plan.Reductions[0])
	if err != nil {
		return nil, err
	}
	plan.View, plan.Own = after.View(b.Model), p.got.Usage
	return plan, nil
}

// The request for a summary has all of request 3, of which request 2 is in the
// cache, and 400 more tokens. The request after it shares only the instructions
// with the previous ones.
func TestRunOwnCalls(t *testing.T) {
	for _, waste := range []bool{false, true} {
		p := &asker{waste: waste}
		cand := Candidate{Name: "asker", New: func(z policy.Summarizer) (furl.Policy, error) { p.z = z; return p, nil }}
		o := Options{Candidates: []Candidate{cand}, Catalog: toyCatalog(t)}
		rep := play(t, o, ledger(t, "toy").recording())
		r := rep.Recordings[0].Results[0]
		written := token.For(&furl.Model{}).Count(p.got.Text)
		usage := furl.Usage{CacheRead: 445, CacheWrite: 690 - 445 + 400, Output: written}
		if p.got.Usage != usage || written == 0 {
			t.Errorf("usage %+v, want %+v", p.got.Usage, usage)
		}
		own := 445*100e-6 + 645*1250e-6 + float64(written)*5000e-6
		if money(r.Split.Own) != money(own) {
			t.Errorf("own calls cost %s, want %s", money(r.Split.Own), money(own))
		}
		points := r.Series[0].Points
		if waste {
			if points[2].Read != 445 || r.CacheBreaks != 0 {
				t.Errorf("request 3 read %d tokens, %d breaks", points[2].Read, r.CacheBreaks)
			}
			continue
		}
		if size := 100 + written + 4 + 245; points[2].Tokens != size || points[2].Read != 100 || r.CacheBreaks != 1 {
			t.Errorf("request 3: %d tokens, %d read, %d breaks; want %d, 100, 1", points[2].Tokens, points[2].Read, r.CacheBreaks, size)
		}
		// Input of none is $1.977.
		input := r.Split.Input()
		if money(*r.CostRatio) != money(input/1.977) {
			t.Errorf("ratio %s, want %s with own calls", money(*r.CostRatio), money(input/1.977))
		}
	}
}
