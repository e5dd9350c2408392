package replay

import (
	"fmt"
	"math"
	"testing"

	"github.com/furlhq/furl"
)

// compacted is a session whose agent compacts after nine steps, and goes on.
func compacted(t *testing.T, red furl.Reduction, by furl.Actor, more bool) *tape {
	b := newTape(t, "toy", furl.FormatAnthropic)
	first := b.user("Read the pieces.")
	for n := range 9 {
		b.asks("10s")
		b.calls(fmt.Sprint("c", n), "read", fmt.Sprintf(`{"piece":%d}`, n))
		b.result(fmt.Sprint("c", n), words(700))
	}
	b.asks("10s")
	last := b.says("I have read them.")
	summary, err := b.codec.NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: red.Summary.Text}})
	if err != nil {
		t.Fatal(err)
	}
	red.Stage = "compact"
	red.Items = []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: last}}}, Show: furl.Mark{Messages: []*furl.Message{summary}}}}
	if _, err := b.s.Log.Append(b.s.Log.Head(), b.at, by, &red); err != nil {
		t.Fatal(err)
	}
	if more {
		b.user("And now?")
		b.asks("10s")
		b.says("Nothing.")
	}
	return b
}

// What the agent's own compaction cost is billed, unless the policy's prompt was so small that
// the agent would not have compacted.
func TestCompactionsOfTheAgent(t *testing.T) {
	usage := furl.Usage{CacheRead: 6000, Input: 400, Output: 200} // $0.60, $0.40, $1.00
	text := words(199)
	for name, c := range map[string]struct {
		red          furl.Reduction
		by           furl.Actor
		none, masked float64 // -1: simulated
	}{
		"recorded usage":        {furl.Reduction{Reason: "auto", Summary: &furl.Summary{Text: text, Model: "toy", Usage: usage}}, furl.Import, 2, 0},
		"asked for by the user": {furl.Reduction{Reason: "manual", Summary: &furl.Summary{Text: text, Model: "toy", Usage: usage}}, furl.Import, 2, 2},
		"usage not recorded":    {furl.Reduction{Summary: &furl.Summary{Text: text, Model: "toy"}}, furl.Import, -1, 0},
		"without a model":       {furl.Reduction{Summary: &furl.Summary{Text: text}}, furl.Import, 0, 0},
		"of the gateway":        {furl.Reduction{Summary: &furl.Summary{Text: text, Model: "toy"}}, furl.Upstream, 0, 0},
	} {
		for _, more := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, continued %v", name, more), func(t *testing.T) {
				rep := play(t, Options{Candidates: presets(t, none, "rolling-mask-5")}, compacted(t, c.red, c.by, more).recording())
				for i, want := range []float64{c.none, c.masked} {
					r := &rep.Totals[i]
					if want < 0 {
						// The last prompt, with the reply, from the cache or written; 2,200 tokens to ask; 199 of output, all in 0.1 cents.
						low, high := 0.1*float64(r.Peak)/1e3+2.2+5*0.199, 1.25*float64(r.Peak)/1e3+1.25*2.2+5*0.25
						if r.Split.Compactions < low || r.Split.Compactions > high {
							t.Errorf("%s pays $%.3f, want $%.3f to $%.3f", r.Policy, r.Split.Compactions, low, high)
						}
						want = r.Split.Compactions
					}
					if math.Abs(r.Split.Compactions-want) > 1e-9 {
						t.Errorf("%s pays $%.3f, want $%.3f", r.Policy, r.Split.Compactions, want)
					}
					s := r.Split
					if sum := s.CacheWrite + s.CacheRead + s.Fresh + s.Output + s.Own + want; math.Abs(*r.Total()-sum) > 1e-9 {
						t.Errorf("%s costs $%.3f, want $%.3f", r.Policy, *r.Total(), sum)
					}
				}
			})
		}
	}
}
