package event

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// StageOverflow is the stage of a plan step for a prompt that the provider
// refused as too long: Before is its size and After the limit, 0 if unknown.
const StageOverflow = "overflow"

// StageWarning and the code of a warning are the stage of a plan step for a warning of the
// plan, whose text is in Skipped.
const StageWarning = "warning:"

// StageDryRun is the stage of the last plan step of a dry run: the request was sent as the
// client sent it.
const StageDryRun = "dry-run"

// StageHourCache is the stage of a plan step for a request whose instructions and tools
// furl gave cache entries of one hour.
const StageHourCache = "cache-1h"

// StageRepair is the stage of a plan step for a repair: Skipped has the files in which an edit
// failed, separated by commas, and After is Before with their text shown again.
const StageRepair = "repair"

// StageExtract is the stage of reductions that replace messages by an extract.
const StageExtract = "extract"

// StageEvict is the stage of reductions that evict the oldest messages.
const StageEvict = "evict"

// Of returns the events of appending r to a path with the state s, to which r
// has not been applied yet. They follow from s and r alone, so every reader
// gets the same events, whenever it reads. The limit is the session's context
// window in tokens, 0 if it is unknown. A record that cannot be applied to s
// has no events.
func Of(s *furl.State, r furl.Record, limit int) []Event {
	var events []Event
	switch b := r.Body.(type) {
	case *furl.Message:
		if size := s.Size(); size > 0 {
			events = append(events, usage(size+b.Tokens(), limit))
		}
	case *furl.Exchange:
		for _, step := range b.Plan {
			code, warns := strings.CutPrefix(step.Stage, StageWarning)
			switch {
			case warns && warned(s, step.Stage):
			case warns:
				events = append(events, Warning{Code: code, Text: step.Skipped})
			case step.Stage == StageOverflow:
				events = append(events, OverflowRecovered{Reported: step.Before, Limit: step.After})
			case step.Stage == StageRepair:
				events = append(events, EditRepaired{Files: step.Skipped, Tokens: step.After - step.Before})
			case step.Stage == furl.StageRefusedThinking:
				events = append(events, ThinkingRecovered{})
			case step.Skipped != "" && step.Stage != StageHourCache:
				events = append(events, Skipped{Stage: step.Stage, Reason: step.Skipped})
			}
		}
		if size := cmp.Or(b.Usage.Prompt(), b.Estimated); size > 0 {
			events = append(events, usage(size, limit))
		}
	case *furl.Reduction:
		e, err := s.Effect(b)
		if err != nil {
			return nil
		}
		events = ofReduction(b, r.Seq, e, limit)
		if b.After > 0 {
			events = append(events, usage(b.After, limit))
		}
	case *furl.Takeover:
		events = ofTakeover(s, b, limit)
	case *furl.Restoration:
		if b.Of == 0 && !b.Open {
			return nil // it only pins or unpins
		}
		if tokens, err := restored(s, b); err == nil {
			events = append(events, Restored{Reduction: b.Of, Tokens: tokens})
		}
	case *furl.Head:
		if b.From == r.Parent {
			return nil // the conversation continues where it was, as after a redaction
		}
		events = append(events, Rewound{To: r.Parent, Branch: b.From})
	}
	return events
}

// warned reports whether the request before has the same warning: it is told once.
func warned(s *furl.State, stage string) bool {
	last := s.LastExchange()
	return last != nil && slices.ContainsFunc(last.Plan, func(p furl.PlanStep) bool { return p.Stage == stage })
}

func usage(size, limit int) ContextUsage {
	u := ContextUsage{CurrentSize: size, Limit: limit}
	if limit > 0 {
		u.Percentage = math.Round(float64(size)*1000/float64(limit)) / 10
	}
	return u
}

// scaled turns counted tokens into the provider's, at the scale of the time of
// the reduction.
func scaled(r *furl.Reduction, counted int) int {
	b := furl.Budget{Scale: r.Scale}
	return b.Of(counted, 0)
}

// ofReduction returns one event for messages that a placeholder replaces, and
// one for blocks that show another text in place.
func ofReduction(r *furl.Reduction, seq furl.Seq, e furl.Effect, limit int) []Event {
	var events []Event
	switch {
	case r.Summary != nil:
		if r.Summary.Request != "" {
			events = append(events, SummaryRequested{CurrentSize: r.Before, Limit: limit})
		}
		events = append(events, Compacted{
			Number:            r.Summary.Number,
			MessagesArchived:  r.Summary.Messages,
			ContextSizeBefore: r.Before,
			Summary:           r.Summary.Text,
			Extract:           r.Stage == StageExtract,
		})
	case r.Stage == StageEvict && len(e.Messages) > 0:
		events = append(events, Rolled{
			Reduction:       seq,
			MessagesEvicted: len(e.Messages),
			TokensEvicted:   scaled(r, e.Tokens),
			From:            Stamp(e.From),
			To:              Stamp(e.To),
		})
	case len(e.Messages) > 0:
		events = append(events, Truncated{
			Truncation:        seq,
			MessagesRemoved:   len(e.Messages),
			PrevContextTokens: r.Before,
		})
	}
	if e.Blocks > 0 {
		events = append(events, Masked{
			Reduction:   seq,
			Count:       e.Blocks,
			Chars:       e.Chars,
			TokensFreed: max(0, r.Before-r.After),
		})
	}
	return events
}

// ofTakeover returns the events of the reductions that a takeover brings to
// the path, as if each was recorded now.
func ofTakeover(s *furl.State, t *furl.Takeover, limit int) []Event {
	var events []Event
	for seq, body := range t.Taken() {
		red, ok := body.(*furl.Reduction)
		if _, here := s.Reduction(seq); here || !ok {
			continue
		}
		e, err := s.Effect(red)
		if err != nil {
			continue
		}
		events = append(events, ofReduction(red, seq, e, limit)...)
		if s, err = s.With(red); err != nil {
			return events // cannot be: its effect is known
		}
	}
	return events
}

// restored is the size, in the provider's tokens, of what a restoration shows again:
// blocks as recorded, or the text that an older reduction shows in place of a block.
func restored(s *furl.State, res *furl.Restoration) (int, error) {
	after, err := s.With(res)
	if err != nil {
		return 0, err
	}
	counted := make(map[furl.Seq]int) // by the reduction that hid the blocks
	for i := range s.Len() {
		seq, m := s.Message(i)
		for b := range m.Blocks {
			p := furl.Pos{Msg: seq, Block: b}
			by, now := s.ShownBy(p), after.ShownBy(p)
			switch {
			case by == 0 || by == now:
			case now == 0:
				counted[by] += m.Blocks[b].Tokens
			default:
				counted[by] += inPlace(after, now, p)
			}
		}
	}
	n := 0
	for seq, tokens := range counted {
		red, _ := s.Reduction(seq)
		n += scaled(red.Reduction, tokens)
	}
	return n, nil
}

// inPlace is the counted size of the text that a reduction shows in place of a block, 0
// if a mark replaces the block.
func inPlace(s *furl.State, by furl.Seq, p furl.Pos) int {
	red, ok := s.Reduction(by)
	if !ok {
		return 0 // blocks were expanded
	}
	for _, item := range red.Items {
		in, ok := item.Show.(furl.In)
		if !ok {
			continue
		}
		for _, sp := range item.Spans {
			if !before(p, sp.First) && !before(sp.Last, p) {
				return in.Tokens
			}
		}
	}
	return 0
}

func before(a, b furl.Pos) bool {
	return cmp.Or(cmp.Compare(a.Msg, b.Msg), cmp.Compare(a.Block, b.Block)) < 0
}
