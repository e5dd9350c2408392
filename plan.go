package furl

import (
	"context"
	"math"
	"time"
)

// Budget is what a plan has to work with. Sizes are estimates in the provider's
// tokens (package token).
type Budget struct {
	Model   Model
	Counter Counter
	// Window is the context window; 0: unknown, and nothing is reduced.
	Window int
	// Reserve is kept free for the reply.
	Reserve int
	// Size is the estimated size of the request to plan.
	Size int
	// Fixed is the part of Size outside the messages: instructions and tools.
	Fixed int
	// Scale is the provider's tokens per counted token. If zero, 1.
	Scale float64
	// PerItem is the cost of each visible tool call and result beyond its text,
	// in the provider's tokens.
	PerItem float64
	// MaxBytes, MaxImages and MaxMessages are further limits of a request; 0:
	// none.
	MaxBytes, MaxImages, MaxMessages int
	// Now and LastUse are the times of this request and of the one before it on
	// this path; zero if unknown.
	Now, LastUse time.Time
	// LongTo is the last message with a cache breakpoint of one hour, if the
	// entries of later messages live only Model.Caching.Lifetime; 0: all
	// messages have entries of the same lifetime.
	LongTo Seq
	// Uncached reports that the provider caches no message, because the request
	// has no breakpoint for them.
	Uncached bool
	// Cold reports that the prompt cache is lost for another reason than time:
	// the model or the tools changed.
	Cold bool
	// Remaining is the expected number of further requests; 0: unknown.
	Remaining float64
	// Recall reports whether the model can call furl's recall tools.
	Recall bool
	// Force demands a reduction below the window whatever the trigger: the
	// provider has refused the prompt.
	Force bool
}

// Room returns the largest prompt that leaves room for the reply.
func (b *Budget) Room() int { return b.Window - b.Reserve }

// Of returns the size of a part of a view in the provider's tokens, from its
// counted tokens and its number of tool calls and results.
func (b *Budget) Of(counted, items int) int {
	scale := b.Scale
	if scale == 0 {
		scale = 1
	}
	return int(math.Round(float64(counted)*scale + float64(items)*b.PerItem))
}

// After returns the budget for the view that a reduction leaves: Size shrinks
// by what became invisible. If that is more than Size, which a provider then reported
// far smaller than the content, Size shrinks in proportion.
func (b Budget) After(before, after *View) Budget {
	freed := b.Of(before.Tokens-after.Tokens, before.Items-after.Items)
	if whole := b.Of(before.Tokens, before.Items); freed > b.Size && whole > 0 {
		freed = int(math.Round(float64(b.Size) * float64(freed) / float64(whole)))
	}
	b.Size -= freed
	return b
}

// Policy decides what to hide.
type Policy interface {
	Name() string
	// Plan returns what to record before the next request, without changing the
	// state. It only computes, unless the policy asks a model for a summary;
	// only then may it take time or fail.
	Plan(ctx context.Context, s *State, b Budget) (*Plan, error)
}

// Plan is what a policy decided.
type Plan struct {
	// Reductions are the reductions to append, in order.
	Reductions []*Reduction
	// Steps describe what each stage did, in order.
	Steps []PlanStep
	// Before and After are the estimated sizes without and with the plan.
	Before, After int
	// Backstops counts the reductions of content that the policy would keep,
	// made because the window demanded it.
	Backstops int
	// Impossible reports that even the smallest possible request is too large;
	// Reason says why.
	Impossible bool
	// Reason says why the view is still above the trigger, "" if it is not.
	Reason string
	// View is the view with the reductions appended. It is valid until the
	// state changes otherwise.
	View *View
	// Own is the usage of the policy's model calls.
	Own Usage
	// Warnings are for logs and pages. A warning may be repeated by each plan;
	// readers show it once.
	Warnings []Warning
}

// Warning is something a person should know about how a policy works here.
type Warning struct {
	Code string `json:"code"` // stable, such as "no_recall"
	Text string `json:"text"`
}

// PlanStep says what one stage did in a plan.
type PlanStep struct {
	Stage   string
	Skipped string // why it did nothing; "" if it reduced
	Failed  bool   // Skipped is the text of a failure, not a reason to rest
	Before  int    // estimated size of the view before it
	After   int
	Hidden  int // messages or blocks it hid
}

// InPlace returns text to show in place of b, measured like Message.Measure:
// text and envelope, without media and signature. A nil Counter counts four
// bytes a token.
func InPlace(b *Block, text string, c Counter) In {
	n := envelopeTokens
	if text != "" {
		n += count(c, text)
	}
	if b.Kind == KindCall && b.Name != "" {
		n += count(c, b.Name)
	}
	return In{Text: text, Tokens: n}
}

func count(c Counter, text string) int {
	if c == nil {
		return (len(text) + 3) / 4
	}
	return c.Count(text)
}
