package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// Outcome is what a plan does, for people and programs. furl reduce, furl fit and the
// gateway's API print it as JSON. Sizes are in the provider's tokens.
type Outcome struct {
	Planned []Planned `json:"planned"`
	// Before and After are the sizes of the context.
	Before int `json:"context_size_before"`
	After  int `json:"context_size_after"`
	// Graduated has the figures of the preset graduated (M5), nil for other policies.
	Graduated *GraduatedOutcome `json:"graduated,omitempty"`
	// Eviction is what was evicted (R2), nil if nothing was.
	Eviction *Eviction `json:"eviction,omitempty"`
	// Backstops counts reductions of content that the policy would keep, made
	// because the window required it.
	Backstops int `json:"backstops,omitempty"`
	// Impossible reports that even the smallest request is larger than the window.
	Impossible bool `json:"impossible,omitempty"`
	// Reason is why nothing or not enough was hidden, else "".
	Reason   string         `json:"reason,omitempty"`
	Warnings []furl.Warning `json:"warnings,omitempty"`
}

// Planned is a planned reduction with its effect and cost (X3, X4).
type Planned struct {
	// Record is the record of the reduction, 0 if it is not recorded.
	Record furl.Seq `json:"reduction_id,omitempty"`
	Stage  string   `json:"stage"`
	Reason string   `json:"reason"`
	// Messages are replaced by a marker; Blocks is the number of blocks replaced by
	// placeholders.
	Messages []furl.Seq `json:"messages,omitempty"`
	Blocks   int        `json:"blocks,omitempty"`
	// Before and After are the sizes of the context.
	Before int       `json:"context_size_before"`
	After  int       `json:"context_size_after"`
	Cost   furl.Cost `json:"cost"`
	// Summary is the summary of the messages, "" if there is none.
	Summary string `json:"summary,omitempty"`
	// Markers replace Messages, and Placeholders replace the Blocks.
	Markers      []MarkerText `json:"markers,omitempty"`
	Placeholders []Replaced   `json:"placeholders,omitempty"`
}

// MarkerText is a message that replaces hidden messages.
type MarkerText struct {
	Role furl.Role `json:"role"`
	Text string    `json:"text"`
	// Time is just before that of the first message after it (T2), zero if the
	// recording has no times.
	Time time.Time `json:"timestamp,omitzero"`
}

// Replaced is a block that a placeholder replaces.
type Replaced struct {
	Message furl.Seq `json:"message"` // its record
	Block   int      `json:"block"`
	Tool    string   `json:"tool,omitempty"`
	// Length is the size of the recorded text in characters, and Age the number of
	// steps since the block's own (A2).
	Length int    `json:"original_length"`
	Age    int    `json:"age"`
	Text   string `json:"text"` // the placeholder
}

// OutcomeOf describes the plan of a policy for a budget, of which only the Model counts.
// s is the state before the plan's reductions were appended; another one is an error.
func OutcomeOf(p furl.Policy, s *furl.State, b *furl.Budget, plan *furl.Plan) (Outcome, error) {
	o := Outcome{
		Planned: []Planned{}, Before: plan.Before, After: plan.After, Backstops: plan.Backstops,
		Impossible: plan.Impossible, Reason: plan.Reason, Warnings: plan.Warnings,
	}
	if models, ok := p.(*perModel); ok {
		p = models.of(b.Model.ID)
	}
	if p.Name() == graduated {
		g, err := GraduatedResult(s, plan)
		if err != nil {
			return o, err
		}
		o.Graduated = &g
	}
	if e, ok := EvictionResult(s, plan); ok {
		o.Eviction = &e
	}
	tools := make(map[string]string) // by the id of the call
	for i := range s.Len() {
		_, m := s.Message(i)
		for j := range m.Blocks {
			if b := &m.Blocks[j]; b.Kind == furl.KindCall {
				tools[b.ID] = b.Name
			}
		}
	}
	ages := agesIn(s.View(furl.Model{}))
	for _, red := range plan.Reductions {
		e, err := s.Effect(red)
		if err != nil {
			return o, err
		}
		pl := Planned{
			Stage: red.Stage, Reason: red.Reason, Messages: e.Messages, Blocks: e.Blocks,
			Before: red.Before, After: red.After, Cost: red.Cost,
		}
		if red.Summary != nil {
			pl.Summary = red.Summary.Text
		}
		for _, item := range red.Items {
			switch show := item.Show.(type) {
			case furl.Mark:
				for _, m := range show.Messages {
					pl.Markers = append(pl.Markers, MarkerText{Role: m.Role, Text: textOf(m), Time: show.At})
				}
			case furl.In:
				pl.Placeholders = appendReplaced(pl.Placeholders, s, item.Spans, show.Text, tools, ages)
			}
		}
		o.Planned = append(o.Planned, pl)
		if s, err = s.With(red); err != nil {
			return o, err
		}
	}
	return o, nil
}

// agesIn returns the age in steps of each visible block that is in a step.
func agesIn(v *furl.View) map[furl.Pos]int {
	ages := make(map[furl.Pos]int)
	for i := range v.Units {
		u := &v.Units[i]
		for j := range u.Blocks {
			if u.Step > 0 {
				ages[u.Blocks[j].Pos] = v.Steps - u.Step
			}
		}
	}
	return ages
}

// appendReplaced appends the visible blocks of spans.
func appendReplaced(list []Replaced, s *furl.State, spans []furl.Span, text string, tools map[string]string, ages map[furl.Pos]int) []Replaced {
	for _, sp := range spans {
		for p := sp.First; p.Msg == sp.First.Msg && !before(sp.Last, p); p.Block++ {
			i, ok := s.Find(p.Msg)
			if !ok {
				break
			}
			_, m := s.Message(i)
			if p.Block >= len(m.Blocks) {
				break
			}
			b := &m.Blocks[p.Block]
			length := utf8.RuneCountInString(b.Text)
			if b.Kind == furl.KindCall {
				length += utf8.RuneCount(b.Args)
			}
			list = append(list, Replaced{Message: p.Msg, Block: p.Block, Tool: cmp.Or(b.Name, tools[b.ID]), Length: length, Age: ages[p], Text: text})
		}
	}
	return list
}

// textOf joins the texts of a message.
func textOf(m *furl.Message) string {
	var texts []string
	for i := range m.Blocks {
		if t := m.Blocks[i].Text; t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}

// GraduatedOutcome is what the preset graduated did in a plan (M5).
type GraduatedOutcome struct {
	Reduced bool `json:"reduced"`
	// DroppedCount is how many messages an extract or a truncation replaced.
	DroppedCount int `json:"dropped_count"`
	// MaskedCount is how many results were masked or clipped, MaskedChars by how
	// many characters that made them shorter.
	MaskedCount int `json:"masked_count"`
	MaskedChars int `json:"masked_chars"`
	// ReductionStage is the last stage that reduced: masking, summarization
	// or fallback; "" if none did.
	ReductionStage string `json:"reduction_stage"`
	// InvariantStatus is "impossible" if the view is above the budget after all
	// stages. Otherwise it is "fallback" if masks and extracts were not enough, or
	// if the work of a stage was discarded because the request would have been
	// invalid; else "ok".
	InvariantStatus string `json:"invariant_status"`
}

// GraduatedResult describes what the preset graduated did in its plan. s is the state
// before the plan's reductions were appended; another one is an error.
func GraduatedResult(s *furl.State, plan *furl.Plan) (GraduatedOutcome, error) {
	g := GraduatedOutcome{InvariantStatus: "ok", Reduced: len(plan.Reductions) > 0}
	masked := make(map[furl.Pos]bool) // a mask may replace a clip
	for _, red := range plan.Reductions {
		e, err := s.Effect(red)
		if err != nil {
			return g, err
		}
		switch {
		case red.Summary != nil:
			g.ReductionStage = "summarization"
		case len(e.Messages) > 0:
			g.ReductionStage, g.InvariantStatus = "fallback", "fallback"
		default:
			g.ReductionStage = "masking"
		}
		g.DroppedCount += len(e.Messages)
		g.MaskedChars += e.Chars
		if e.Blocks > 0 {
			for _, item := range red.Items {
				if _, ok := item.Show.(furl.In); ok {
					for _, sp := range item.Spans {
						masked[sp.First] = true // a stage makes an item for each block
					}
				}
			}
		}
		if s, err = s.With(red); err != nil {
			return g, err
		}
	}
	g.MaskedCount = len(masked)
	for _, step := range plan.Steps {
		if step.Failed {
			g.InvariantStatus = "fallback"
		}
	}
	switch {
	case plan.Impossible || plan.Reason != "":
		g.InvariantStatus = "impossible"
	case plan.Backstops > 0:
		g.InvariantStatus = "fallback"
	}
	return g, nil
}

// Eviction is what the preset rolling did in a plan (R2). Sizes are in the
// provider's tokens.
type Eviction struct {
	Kept    []furl.Seq `json:"kept"`    // messages the model still sees
	Evicted []furl.Seq `json:"evicted"` // messages newly hidden
	// TokensEvicted is the size of Evicted, TokensKept that of the view.
	TokensEvicted int `json:"tokens_evicted"`
	TokensKept    int `json:"tokens_kept"`
	// From and To are the times of the first and the last message evicted;
	// zero when the recording has none.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// EvictionResult describes what the preset rolling did in its plan. s is the state
// before the plan's reductions were appended. If nothing was evicted, ok is false.
func EvictionResult(s *furl.State, plan *furl.Plan) (e Eviction, ok bool) {
	for _, red := range plan.Reductions {
		if red.Stage != event.StageEvict {
			continue
		}
		effect, err := s.Effect(red)
		if err != nil {
			return Eviction{}, false // not the state that was planned for
		}
		e.Evicted = effect.Messages
		b := furl.Budget{Scale: red.Scale}
		e.TokensEvicted, e.TokensKept = b.Of(effect.Tokens, 0), b.Of(plan.View.Tokens, 0)
		e.From, e.To = effect.From, effect.To
		ok = true
	}
	if !ok {
		return Eviction{}, false
	}
	for i := range plan.View.Messages {
		sh := &plan.View.Messages[i]
		// A message of which only the user's text is left counts as kept.
		if _, gone := slices.BinarySearch(e.Evicted, sh.Seq); sh.Index >= 0 && !gone {
			e.Kept = append(e.Kept, sh.Seq)
		}
	}
	return e, true
}
