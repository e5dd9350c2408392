package furl

import (
	"context"
	"math"
	"time"
)

// Budget is what a plan has to work with. Sizes are in the provider's tokens,
// as estimated (package token), unless said otherwise.
type Budget struct {
	Model   Model
	Counter Counter
	// Window is the context window; 0: unknown, and nothing is reduced.
	Window int
	// Reserve is kept free for the reply.
	Reserve int
	// Size is the estimated size of the request whose view is planned.
	Size int
	// Fixed is the part of Size that is no message: system and tools.
	Fixed int
	// Scale turns counted tokens into the provider's. If zero, 1.
	Scale float64
	// PerItem is what each tool call and each result that is shown costs
	// beyond its words, in the provider's tokens.
	PerItem float64
	// MaxBytes, MaxImages and MaxMessages limit the request further; 0: no
	// limit.
	MaxBytes, MaxImages, MaxMessages int
	// Now and LastUse are the time of the request and of the one before it
	// on this path; zero when unknown.
	Now, LastUse time.Time
	// Cold says that the provider's cache holds nothing of the last request
	// for another reason than time: model or tools have changed.
	Cold bool
	// Remaining is how many further requests are expected, where earlier
	// sessions tell; 0: the policy guesses.
	Remaining float64
	// Recall says that the model can call furl's recall tools.
	Recall bool
	// Force asks for a reduction below the window whatever the trigger: the
	// provider has just refused the prompt.
	Force bool
}

// Room is the largest prompt that still leaves room for the reply.
func (b *Budget) Room() int { return b.Window - b.Reserve }

// Of is what a part of a view costs, in the provider's tokens: so many counted
// ones, and so many tool calls and results.
func (b *Budget) Of(counted, items int) int {
	scale := b.Scale
	if scale == 0 {
		scale = 1
	}
	return int(math.Round(float64(counted)*scale + float64(items)*b.PerItem))
}

// Scaled turns counted tokens into the provider's, for words alone: what is
// hidden in place leaves its call and result where they are.
func (b *Budget) Scaled(counted int) int { return b.Of(counted, 0) }

// After is the budget for what a reduction left of a view: Size shrinks by
// what became invisible.
func (b Budget) After(before, after *View) Budget {
	b.Size -= b.Of(before.Tokens-after.Tokens, before.Items-after.Items)
	return b
}

// Policy decides what to hide.
type Policy interface {
	Name() string
	// Plan returns what is to be recorded before the next request is sent.
	// It does not change the state and does nothing but compute, but for
	// policies that ask a model for a summary; only those may take time or
	// return an error.
	Plan(ctx context.Context, s *State, b Budget) (*Plan, error)
}

// Plan is what a policy decided.
type Plan struct {
	// Reductions are to be appended in this order.
	Reductions []*Reduction
	// Steps tell what each stage did, in order.
	Steps []PlanStep
	// Before and After are the estimated sizes without and with the plan.
	Before, After int
	// Backstops counts the reductions made beyond the policy's own keeps
	// because the window demanded it.
	Backstops int
	// Impossible says that even the least that must be sent is too large,
	// and Reason why.
	Impossible bool
	// Reason says why the view is still above its trigger, "" if it is not.
	Reason string
	// View is what is left to be sent: of the state with the reductions
	// appended. It is valid until the state changes in another way.
	View *View
	// Own is the usage of the policy's own model calls.
	Own Usage
	// Warnings are for the log and the page. The same warning may come with
	// every plan; readers show it once.
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

// State gives s with the plan's reductions appended; valid until s changes.
func (p *Plan) State(s *State) (*State, error) {
	for _, red := range p.Reductions {
		var err error
		if s, err = s.With(red); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// InPlace gives text to be shown in place of b, measured as Message.Measure
// would measure it there: words and envelope count, what b carries beside its
// words (media, signature) does not. A nil Counter counts four bytes a token.
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
