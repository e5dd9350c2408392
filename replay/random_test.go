package replay

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// randomTape is a session with everything that a recording can have: texts, steps of
// parallel calls, thinking, pauses, rewinds, and the agent's own compactions and
// cleared results.
func randomTape(t *testing.T, rt *rapid.T) *tape {
	model := rapid.SampledFrom([]string{"toy", "toy-forgets", "toy-binds", "toy-auto", "no-such-model"}).Draw(rt, "model")
	wire := furl.FormatAnthropic
	if model == "toy-auto" {
		wire = furl.FormatChat
	}
	b := newTape(t, model, wire)
	b.user("Fix pkg/parse.go.")
	clock := time.Duration(0)
	calls := 0
	var stops []furl.Seq // where the session can be cut
	turns := 25
	if raceDetector {
		turns = 8
	}
	for range rapid.IntRange(1, turns).Draw(rt, "turns") {
		clock += time.Duration(rapid.SampledFrom([]int{1, 20, 400}).Draw(rt, "pause")) * time.Second
		switch rapid.IntRange(0, 9).Draw(rt, "what") {
		case 0:
			if len(stops) > 0 {
				b.rewind(rapid.SampledFrom(stops).Draw(rt, "to"))
				b.user("Once more.")
			}
		case 1:
			b.compacts(rapid.IntRange(1, 4).Draw(rt, "units"))
		case 2:
			b.clears(rapid.IntRange(1, 5).Draw(rt, "results"))
		}
		b.asks(clock.String(), b.usage(rapid.Bool().Draw(rt, "reported")))
		var blocks []furl.Block
		if wire == furl.FormatAnthropic && rapid.Bool().Draw(rt, "thinks") {
			blocks = append(blocks, furl.Block{Kind: furl.KindThinking, Text: words(rapid.IntRange(1, 80).Draw(rt, "thought")), Signature: 12})
		}
		n := rapid.IntRange(0, 3).Draw(rt, "calls")
		if n == 0 {
			blocks = append(blocks, furl.Block{Kind: furl.KindText, Text: "pkg/parse.go has func_" + fmt.Sprint(calls/2)})
		}
		for i := range n {
			blocks = append(blocks, furl.Block{Kind: furl.KindCall, ID: fmt.Sprint("c", calls+i), Name: "read", Args: fmt.Appendf(nil, `{"file_path":"pkg/f%d.go"}`, (calls+i)%5)})
		}
		b.message(furl.RoleAssistant, blocks...)
		b.results(rt, calls, n)
		calls += n
		stops = append(stops, b.s.Log.Head())
		if n == 0 || rapid.IntRange(0, 5).Draw(rt, "speaks") == 0 {
			b.user("Go on with func_" + fmt.Sprint(calls) + ". " + words(rapid.IntRange(0, 150).Draw(rt, "words")))
		}
	}
	b.asks((clock + time.Second).String())
	b.says("Done.")
	return b
}

// results adds the results of n calls: in one message in Anthropic's format, in one
// each in others.
func (b *tape) results(rt *rapid.T, first, n int) {
	var blocks []furl.Block
	for i := range n {
		text := fmt.Sprintf("a line of some length about func_%d and more\n", first+i) + words(rapid.IntRange(0, 300).Draw(rt, "result"))
		blocks = append(blocks, furl.Block{Kind: furl.KindResult, ID: fmt.Sprint("c", first+i), Text: text})
	}
	switch {
	case n == 0:
	case b.s.Wire == furl.FormatAnthropic:
		b.message(furl.RoleUser, blocks...)
	default:
		for _, block := range blocks {
			b.message(furl.RoleTool, block)
		}
	}
}

// usage is a usage that a provider might report for the next request.
func (b *tape) usage(reported bool) furl.Usage {
	if !reported {
		return furl.Usage{}
	}
	size := 500 // instructions that were not recorded
	v := b.s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for _, sb := range v.Messages[i].Blocks {
			size += len(sb.Words()) / 5
		}
	}
	return furl.Usage{Input: size, Output: 50}
}

// compacts replaces the first n units by a summary, as agents do.
func (b *tape) compacts(n int) {
	v := b.s.Log.State().View(furl.Model{})
	var units []furl.Unit
	for i := range v.Units {
		if u := &v.Units[i]; len(units) < n && !u.Protected {
			units = append(units, *u)
		}
	}
	if len(units) == 0 {
		return
	}
	b.add(&furl.Reduction{
		Stage:   "compact",
		Items:   []furl.Item{{Spans: v.Spans(units...), Show: furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "A summary of pkg/parse.go.")}}}},
		Summary: &furl.Summary{Text: words(60)},
	})
}

// clears shortens the oldest results, as some clients do.
func (b *tape) clears(n int) {
	red := &furl.Reduction{Stage: "mask"}
	v := b.s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for _, sb := range v.Messages[i].Blocks {
			if sb.Block.Kind == furl.KindResult && len(red.Items) < n {
				red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: furl.In{Text: "[cleared]", Tokens: 7}})
			}
		}
	}
	if len(red.Items) > 0 {
		b.add(red)
	}
}

// Random recordings under each preset: the provider refuses requests only for their
// size, policy none loses nothing, and the parts of costs add up.
func TestRunRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := randomTape(t, rt)
		rep := play(t, Options{Windows: []int{900, 5000}}, b.recording())
		for i := range rep.Totals {
			r := &rep.Totals[i]
			if r.InvalidRequests > 0 {
				rt.Errorf("%s at %d: %s", r.Policy, r.Window, r.FirstRefusal)
			}
			if r.Policy != none && r.Overflows > 0 {
				rt.Errorf("%s at %d: %d overflows", r.Policy, r.Window, r.Overflows)
			}
			if r.Policy == none && (r.ReferencesKept < r.References || r.OwnReferencesKept < r.OwnReferences || r.QuotedLinesKept < r.QuotedLines || r.Reductions > 0) {
				rt.Errorf("policy none: %s, %d reductions", kept(r), r.Reductions)
			}
			if r.ReferencesKept+r.ReferencesRecallable > r.References || r.OwnReferencesKept+r.OwnRecallable > r.OwnReferences || r.QuotedLinesKept > r.QuotedLines {
				rt.Errorf("%s keeps more than there was: %s", r.Policy, kept(r))
			}
			if r.Cost != nil && math.Abs(*r.Cost-r.Split.Input()-r.Split.Output) > 1e-9 {
				rt.Errorf("%s: cost %v of %+v", r.Policy, *r.Cost, r.Split)
			}
			checkTokens(rt, r, &rep.Recordings[0].Results[i])
		}
		checkReported(rt, b.s, rep)
		if again := play(t, Options{Windows: []int{900, 5000}}, b.recording()); !slices.EqualFunc(rep.Totals, again.Totals, sameResult) {
			rt.Error("played again it gave something else")
		}
	})
}

func sameResult(a, b Result) bool {
	return fmt.Sprintf("%+v", summed(a)) == fmt.Sprintf("%+v", summed(b))
}

// summed is a result without its pointers.
func summed(r Result) Result {
	r.Cost, r.CostLow, r.CostHigh, r.CostRatio, r.CostShare, r.PenalisedCostRatio, r.PenalisedShare, r.Series = nil, nil, nil, nil, nil, nil, nil, nil
	return r
}

// checkTokens compares a result with its series.
func checkTokens(rt *rapid.T, total, r *Result) {
	sent, read, requests := 0, 0, 0
	for _, s := range r.Series {
		for _, p := range s.Points {
			requests++
			if p.Read > p.Tokens || p.Read < 0 {
				rt.Errorf("%s read %d of %d tokens", r.Policy, p.Read, p.Tokens)
			}
			if !p.Refused {
				sent, read = sent+p.Tokens, read+p.Read
			}
		}
	}
	if sent != total.TokensSent || requests != total.Requests || total.Requests < total.Overflows+total.Impossible {
		rt.Errorf("%s: %d requests of %d tokens in the series, %d of %d in the result", r.Policy, requests, sent, total.Requests, total.TokensSent)
	}
}

// checkReported compares the sizes under policy none with the reported ones.
func checkReported(rt *rapid.T, s *transcript.Session, rep *Report) {
	points := rep.Recordings[0].Results[0].Series[0].Points
	n := 0
	for i := 1; i <= s.Log.Len(); i++ {
		ex, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Exchange)
		if !ok {
			continue
		}
		if reported := ex.Usage.Prompt(); reported > 0 && points[n].Tokens < reported {
			rt.Errorf("request %d has %d tokens, %d were reported", n+1, points[n].Tokens, reported)
		}
		n++
	}
	if n != len(points) {
		rt.Errorf("%d requests of %d", len(points), n)
	}
}
