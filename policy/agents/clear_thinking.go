package agents

import (
	"cmp"
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// ClearThinking are the options of the preset clear-thinking, which does what
// Anthropic's context editing does with the edit clear_thinking_20251015. It does
// nothing for models whose provider drops all thinking but that of the last turn, and
// for models that refuse requests without it.
type ClearThinking struct {
	// Keep is how many of the newest assistant turns with thinking keep it. A
	// turn is everything between two messages of the user. If zero, 1.
	Keep int `json:"keep,omitempty"`
}

func (o ClearThinking) Validate() error { return validate(option{"keep", o.Keep}) }

func (o ClearThinking) Policy(name string, _ policy.Settings) furl.Policy {
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{&clearThinking{cmp.Or(o.Keep, 1)}}}
}

// clearThinking hides thinking of old turns, oldest first, before every request.
type clearThinking struct{ keep int }

func (*clearThinking) Name() string { return "clear-thinking" }

func (c *clearThinking) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if t := b.Model.Thinking; t.LastOnly || !t.Removable && !t.Binds {
		return nil, policy.Nothing
	}
	red := &furl.Reduction{Stage: c.Name(), Reason: "thinking outside " + newest(c.keep, "turn")}
	turns, thought := 0, false
	for i := len(v.Units) - 1; i >= 0; i-- {
		u := &v.Units[i]
		if u.Kind == furl.UnitUser {
			thought = false
		}
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			if sb.Block.Kind != furl.KindThinking {
				continue
			}
			if !thought {
				turns, thought = turns+1, true
			}
			if turns > c.keep && !u.Newest && !u.Open && sb.Hold < furl.Keep {
				red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: furl.Gone{}})
			}
		}
	}
	if len(red.Items) == 0 {
		return nil, policy.Nothing
	}
	return red, nil
}
