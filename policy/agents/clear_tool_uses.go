package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// ClearToolUses are the options of the preset clear-tool-uses, which does what
// Anthropic's context editing does with the edit clear_tool_uses_20250919. The names
// and the defaults are Anthropic's.
//
// The provider keeps nothing between requests: it edits each prompt as the client
// sends it, without earlier edits. So the trigger is compared with that size, and
// from the first request above it on, each request clears what is too old.
type ClearToolUses struct {
	// Trigger is the size in tokens above which it acts. If zero, 100,000.
	Trigger int `json:"trigger,omitempty"`
	// TriggerToolUses, if not zero, is the number of tool uses above which it
	// acts, in place of a size.
	TriggerToolUses int `json:"trigger_tool_uses,omitempty"`
	// Keep is how many of the newest tool uses stay. If nil, 3.
	Keep *int `json:"keep,omitempty"`
	// ClearAtLeast is how many tokens must be cleared; otherwise nothing is.
	ClearAtLeast int `json:"clear_at_least,omitempty"`
	// ExcludeTools are the tools whose uses are never cleared. They count as kept
	// if they are among the newest.
	ExcludeTools []string `json:"exclude_tools,omitempty"`
	// ClearToolInputs clears the inputs of cleared tool uses too; ClearInputsOf
	// only those of some tools.
	ClearToolInputs bool     `json:"clear_tool_inputs,omitempty"`
	ClearInputsOf   []string `json:"clear_inputs_of,omitempty"`
	// Text is the template of the placeholders, see [policy.Template]. If empty,
	// "[cleared]". Anthropic does not document its text.
	Text string `json:"text,omitempty"`
}

func (o ClearToolUses) Validate() error {
	keep := 0
	if o.Keep != nil {
		keep = *o.Keep
	}
	return validate(option{"trigger", o.Trigger}, option{"trigger_tool_uses", o.TriggerToolUses}, option{"keep", keep}, option{"clear_at_least", o.ClearAtLeast})
}

func (o ClearToolUses) Policy(name string, _ policy.Settings) furl.Policy {
	return &policy.Pipeline{
		Label: name,
		Acts: func(*furl.Budget) int {
			if o.TriggerToolUses > 0 {
				return 0
			}
			return o.trigger() + 1
		},
		Stages: []policy.Stage{&clearToolUses{o}},
	}
}

func (o *ClearToolUses) trigger() int { return cmp.Or(o.Trigger, 100_000) }

func (o *ClearToolUses) keep() int {
	if o.Keep == nil {
		return 3
	}
	return *o.Keep
}

// cleared is the placeholder.
const cleared = "[cleared]"

// clearToolUses is the stage of that preset. It masks results like Mask, and clears
// inputs in the same reduction.
type clearToolUses struct{ o ClearToolUses }

func (*clearToolUses) Name() string { return "mask" }

func (c *clearToolUses) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	if !b.Force && !c.due(v, b) {
		return nil, policy.Nothing
	}
	mask := policy.Mask{
		KeepResults: c.o.keep(),
		Keep:        func(r *policy.Result) bool { return isOneOf(r.Tool(), c.o.ExcludeTools...) },
		Text:        policy.Template(cmp.Or(c.o.Text, cleared)),
		Reason:      "tool uses outside " + newest(max(1, c.o.keep()), "tool use"),
	}
	var picked []policy.Result
	mask.Choose = func(_ furl.Budget, may []policy.Result) []policy.Result {
		picked = may
		return may
	}
	red, err := mask.Reduce(ctx, v, b)
	if err != nil {
		return nil, err
	}
	for i := range picked {
		red.Items = c.clearInput(red.Items, &picked[i], b)
	}
	if n := c.cleared(v, b, red); n < c.o.ClearAtLeast {
		return nil, policy.Skip(fmt.Sprintf("would clear %d tokens, less than %d", n, c.o.ClearAtLeast))
	}
	return red, nil
}

// due reports whether the prompt, as the client sends it, is above the trigger.
func (c *clearToolUses) due(v *furl.View, b furl.Budget) bool {
	if c.o.TriggerToolUses > 0 {
		n := 0
		for i := range v.Units {
			n += results(&v.Units[i])
		}
		return n > c.o.TriggerToolUses
	}
	return b.Size+b.Of(replaced(v), 0) > c.o.trigger()
}

// replaced is by how many counted tokens placeholders have made the view smaller.
func replaced(v *furl.View) int {
	n := 0
	for i := range v.Units {
		for j := range v.Units[i].Blocks {
			if sb := &v.Units[i].Blocks[j]; sb.By != 0 {
				n += max(0, sb.Block.Tokens-sb.Tokens)
			}
		}
	}
	return n
}

// cleared is how many tokens are cleared in the request, earlier clearing included.
func (c *clearToolUses) cleared(v *furl.View, b furl.Budget, red *furl.Reduction) int {
	n := replaced(v)
	for _, item := range red.Items {
		at := item.Spans[0].First
		if i, ok := v.State.Find(at.Msg); ok {
			_, m := v.State.Message(i)
			n += m.Blocks[at.Block].Tokens - item.Show.(furl.In).Tokens
		}
	}
	return b.Of(n, 0)
}

// clearInput appends an item that shows empty arguments for the call of a result.
func (c *clearToolUses) clearInput(items []furl.Item, r *policy.Result, b furl.Budget) []furl.Item {
	if !c.o.ClearToolInputs && !isOneOf(r.Tool(), c.o.ClearInputsOf...) {
		return items
	}
	at := slices.IndexFunc(r.Unit.Blocks, func(sb furl.ShownBlock) bool {
		return sb.Block.Kind == furl.KindCall && sb.Block.ID == r.Block.Block.ID
	})
	if at < 0 {
		return items
	}
	sb := &r.Unit.Blocks[at]
	in := furl.InPlace(sb.Block, emptyArgs(sb.Block.Args), b.Counter)
	if sb.By != 0 || sb.Hold >= furl.Keep || in.Tokens >= sb.Tokens {
		return items
	}
	in.Note = sb.Block.Name + ", its input"
	return append(items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: in})
}
