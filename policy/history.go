package policy

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// Reduced describes one reduction on a path, for lists and timelines (C4). Sizes
// are in the provider's tokens.
type Reduced struct {
	Seq   furl.Seq `json:"reduction_id"`
	Stage string   `json:"stage"`
	// Position is how many messages of the path are before it.
	Position int       `json:"position"`
	Time     time.Time `json:"timestamp,omitzero"`
	// Number counts compactions and extracts along the path; 0 for others.
	Number int `json:"compaction_number,omitempty"`
	// Archived is how many messages a summary newly hid, or how many another
	// marker replaces. Blocks is how many blocks show a placeholder.
	Archived int `json:"messages_archived"`
	Blocks   int `json:"blocks,omitempty"`
	// Before and After are the sizes of the context.
	Before int    `json:"context_size_before"`
	After  int    `json:"context_size_after"`
	Reason string `json:"reason"`
	// Summary is the text that replaces the messages, "" if there is none, and
	// Model the model that wrote it.
	Summary string `json:"summary,omitempty"`
	Model   string `json:"model,omitempty"`
	// Lifted reports that it was undone, Shown that the view shows some of it.
	Lifted bool `json:"lifted,omitempty"`
	Shown  bool `json:"shown"`
}

// Event returns the event of the reduction, as far as it follows from the fields.
func (r *Reduced) Event() event.Event {
	switch {
	case r.Number > 0:
		return event.Compacted{Number: r.Number, MessagesArchived: r.Archived, ContextSizeBefore: r.Before, Summary: r.Summary, Extract: r.Stage == event.StageExtract}
	case r.Archived > 0 && r.Stage == event.StageEvict:
		return event.Rolled{Reduction: r.Seq, MessagesEvicted: r.Archived, TokensEvicted: max(0, r.Freed())}
	case r.Archived > 0:
		return event.Truncated{Truncation: r.Seq, MessagesRemoved: r.Archived, PrevContextTokens: r.Before}
	}
	return event.Masked{Reduction: r.Seq, Count: r.Blocks, TokensFreed: max(0, r.Freed())}
}

// Freed is by how much it made the context smaller.
func (r *Reduced) Freed() int { return r.Before - r.After }

// Reductions lists all reductions on the state's path in order.
func Reductions(s *furl.State) []Reduced {
	shown := make(map[furl.Seq]bool)
	v := s.View(furl.Model{})
	for i := range v.Units {
		shown[v.Units[i].By] = true
		for j := range v.Units[i].Blocks {
			shown[v.Units[i].Blocks[j].By] = true
		}
	}
	var list []Reduced
	for red := range s.Reductions() {
		r := Reduced{
			Seq: red.Seq, Stage: red.Stage, Position: red.Messages, Time: red.At,
			Before: red.Before, After: red.After, Reason: red.Reason,
			Lifted: red.Undone, Shown: shown[red.Seq],
		}
		r.Archived, r.Blocks = covers(s, red.Reduction)
		if red.Summary != nil {
			r.Number, r.Archived = red.Summary.Number, red.Summary.Messages
			r.Summary, r.Model = red.Summary.Text, red.Summary.Model
		}
		list = append(list, r)
	}
	return list
}

// covers counts the messages that a reduction's markers replace, and the blocks
// that show its placeholders.
func covers(s *furl.State, red *furl.Reduction) (messages, blocks int) {
	for _, item := range red.Items {
		for _, sp := range item.Spans {
			lo, ok1 := s.Find(sp.First.Msg)
			hi, ok2 := s.Find(sp.Last.Msg)
			switch _, mark := item.Show.(furl.Mark); {
			case !ok1 || !ok2: // not on a path that was folded
			case mark:
				messages += hi - lo + 1
			case lo == hi:
				blocks += sp.Last.Block - sp.First.Block + 1
			default:
				for i := lo; i <= hi; i++ {
					_, m := s.Message(i)
					blocks += len(m.Blocks)
				}
			}
		}
	}
	return messages, blocks
}

// Compactions lists the reductions that replaced messages by a summary or an
// extract.
func Compactions(s *furl.State) []Reduced {
	var list []Reduced
	for _, r := range Reductions(s) {
		if r.Number > 0 {
			list = append(list, r)
		}
	}
	return list
}
