package policy

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// GraduatedOutcome is what the preset graduated did in a plan (M5).
type GraduatedOutcome struct {
	Reduced bool `json:"reduced"`
	// DroppedCount is how many messages an extract or a truncation replaced.
	DroppedCount int `json:"dropped_count"`
	// MaskedCount is how many results were masked, MaskedChars by how many
	// characters that made them shorter.
	MaskedCount int `json:"masked_count"`
	MaskedChars int `json:"masked_chars"`
	// ReductionStage is the last stage that reduced: masking, summarization
	// or fallback; "" if none did.
	ReductionStage string `json:"reduction_stage"`
	// InvariantStatus is "fallback" if the other stages were not enough, or if
	// the work of one was discarded because the request would have been
	// invalid; else "ok".
	InvariantStatus string `json:"invariant_status"`
}

// GraduatedResult describes what the preset graduated did in its plan. It reads
// the plan's View.
func GraduatedResult(plan *furl.Plan) GraduatedOutcome {
	g := GraduatedOutcome{InvariantStatus: "ok"}
	for _, step := range plan.Steps {
		if step.Failed {
			g.InvariantStatus = "fallback"
		}
		if step.Skipped != "" {
			continue
		}
		g.Reduced = true
		switch step.Stage {
		case "mask":
			g.ReductionStage = "masking"
			g.MaskedCount += step.Hidden
		case "extract":
			g.ReductionStage = "summarization"
			g.DroppedCount += step.Hidden
		default:
			g.ReductionStage, g.InvariantStatus = "fallback", "fallback"
			g.DroppedCount += step.Hidden
		}
	}
	for _, red := range plan.Reductions {
		if red.Stage == "mask" {
			g.MaskedChars += charsBehind(plan.View.State, red)
		}
	}
	return g
}

// charsBehind is by how many characters the placeholders of a reduction are shorter
// than the recorded results.
func charsBehind(s *furl.State, red *furl.Reduction) int {
	n := 0
	for _, item := range red.Items {
		in, _ := item.Show.(furl.In)
		for _, sp := range item.Spans {
			i, ok := s.Find(sp.First.Msg)
			if !ok {
				continue
			}
			if _, m := s.Message(i); sp.First.Block < len(m.Blocks) {
				n += max(0, utf8.RuneCountInString(m.Blocks[sp.First.Block].Text)-utf8.RuneCountInString(in.Text))
			}
		}
	}
	return n
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
