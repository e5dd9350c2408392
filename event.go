package furl

import (
	"fmt"
	"math"
	"time"
)

// Event is what happened to a session's context, in the form every reader
// gets: the library, server-sent events, the chat and the page. Each marshals
// to a JSON object whose sizes and counts are integers, in the provider's
// tokens. Most are derived from records, see Events; those that no record
// stands for are made by whoever learns of them.
type Event interface {
	// EventName is the event's name on the wire, such as "context_rolled".
	EventName() string
	event()
}

// Truncated tells that old messages went behind a mark without a summary. It
// asks nothing of the reader.
type Truncated struct {
	Truncation        Seq `json:"truncation_id"`
	MessagesRemoved   int `json:"messages_removed"`
	PrevContextTokens int `json:"prev_context_tokens"`
}

// SummaryRequested tells that a model is asked for a summary.
type SummaryRequested struct {
	CurrentSize int `json:"current_size"`
	Limit       int `json:"limit"`
}

// Compacted tells that old messages went behind a summary or an extract.
type Compacted struct {
	Number            int    `json:"compaction_number"`
	MessagesArchived  int    `json:"messages_archived"`
	ContextSizeBefore int    `json:"context_size_before"`
	Summary           string `json:"summary"`
}

// ContextUsage tells how full the window is. Limit and Percentage are zero
// when no window is known.
type ContextUsage struct {
	CurrentSize int     `json:"current_size"`
	Limit       int     `json:"limit"`
	Percentage  float64 `json:"percentage"` // to one decimal
}

// Rolled tells that the oldest messages were evicted.
type Rolled struct {
	Reduction       Seq   `json:"reduction_id"`
	MessagesEvicted int   `json:"messages_evicted"`
	TokensEvicted   int   `json:"tokens_evicted"`
	From            Stamp `json:"from"`
	To              Stamp `json:"to"`
}

// Masked tells that blocks show something else in their place.
type Masked struct {
	Reduction   Seq `json:"reduction_id"`
	Count       int `json:"masked_count"`
	Chars       int `json:"masked_chars"`
	TokensFreed int `json:"tokens_freed"`
}

// Skipped tells that a stage was due and did nothing.
type Skipped struct {
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
}

// Restored tells that hidden blocks show as recorded again. Reduction is the
// one that was lifted, 0 when blocks were opened through all of them.
type Restored struct {
	Reduction Seq `json:"reduction_id"`
	Tokens    int `json:"tokens"`
}

// Rewound tells that the conversation goes on from To. Branch is the record
// at the end of the branch that was left.
type Rewound struct {
	To     Seq `json:"to"`
	Branch Seq `json:"branch"`
}

// OverflowRecovered tells that the provider refused a prompt as too long and a
// smaller one was sent instead. Reported is the size it gave, 0 if none.
type OverflowRecovered struct {
	Reported int `json:"reported"`
	Limit    int `json:"limit"`
}

// EventName is "sliding_window_truncation".
func (Truncated) EventName() string { return "sliding_window_truncation" }

// EventName is "summary_requested".
func (SummaryRequested) EventName() string { return "summary_requested" }

// EventName is "context_compacted".
func (Compacted) EventName() string { return "context_compacted" }

// EventName is "context_usage".
func (ContextUsage) EventName() string { return "context_usage" }

// EventName is "context_rolled".
func (Rolled) EventName() string { return "context_rolled" }

// EventName is "observations_masked".
func (Masked) EventName() string { return "observations_masked" }

// EventName is "reduction_skipped".
func (Skipped) EventName() string { return "reduction_skipped" }

// EventName is "restored".
func (Restored) EventName() string { return "restored" }

// EventName is "rewound".
func (Rewound) EventName() string { return "rewound" }

// EventName is "overflow_recovered".
func (OverflowRecovered) EventName() string { return "overflow_recovered" }

// EventName is "warning".
func (Warning) EventName() string { return "warning" }

func (Truncated) event()         {}
func (SummaryRequested) event()  {}
func (Compacted) event()         {}
func (ContextUsage) event()      {}
func (Rolled) event()            {}
func (Masked) event()            {}
func (Skipped) event()           {}
func (Restored) event()          {}
func (Rewound) event()           {}
func (OverflowRecovered) event() {}
func (Warning) event()           {}

// Stamp is a time as readers and marks show it: RFC 3339 in UTC, or "unknown"
// when it is zero.
type Stamp time.Time

func (t Stamp) String() string {
	if time.Time(t).IsZero() {
		return "unknown"
	}
	return time.Time(t).UTC().Format(time.RFC3339)
}

// MarshalText gives the string.
func (t Stamp) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (t *Stamp) UnmarshalText(text []byte) error {
	if string(text) == "unknown" {
		*t = Stamp{}
		return nil
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("time %q: %w", text, err)
	}
	*t = Stamp(at)
	return nil
}

// Events gives the events of appending r to a path with the state s, which
// must not have r applied yet. They follow from the two alone, so that a
// reader who comes later sees what one who was there saw. limit is the
// session's context window, 0 if none is known. A record that cannot be
// applied to s has no events.
func Events(s *State, r Record, limit int) []Event {
	var events []Event
	switch b := r.Body.(type) {
	case *Message:
		if size := s.Size(); size > 0 {
			events = append(events, usage(size+b.Tokens(), limit))
		}
	case *Exchange:
		for _, step := range b.Plan {
			switch {
			case step.Stage == StageOverflow:
				events = append(events, OverflowRecovered{Reported: step.Before, Limit: step.After})
			case step.Skipped != "":
				events = append(events, Skipped{Stage: step.Stage, Reason: step.Skipped})
			}
		}
		if size := b.size(); size > 0 {
			events = append(events, usage(size, limit))
		}
	case *Reduction:
		e, err := s.Effect(b)
		if err != nil {
			return nil
		}
		events = b.events(r.Seq, e, limit)
		if b.After > 0 {
			events = append(events, usage(b.After, limit))
		}
	case *Takeover:
		events = s.takeoverEvents(b, limit)
	case *Restoration:
		if b.Of == 0 && !b.Open {
			return nil // a hold alone shows nothing
		}
		if tokens, err := s.restored(r); err == nil {
			events = append(events, Restored{Reduction: b.Of, Tokens: tokens})
		}
	case *Head:
		events = append(events, Rewound{To: r.Parent, Branch: b.From})
	}
	return events
}

// Moment is a record with what it meant for the context.
type Moment struct {
	Record Record
	Events []Event
}

// Timeline gives the events of the path that ends at head: what is not on the
// path, such as a truncation that was rewound past, has left it. A head that
// is not in the log is an error wrapping ErrNotOnPath.
func (l *Log) Timeline(head Seq, limit int) ([]Moment, error) {
	if head > Seq(len(l.records)) {
		return nil, fmt.Errorf("timeline to record %d: %w", head, ErrNotOnPath)
	}
	var moments []Moment
	s := NewState()
	for _, r := range l.Path(head) {
		if events := Events(s, r, limit); len(events) > 0 {
			moments = append(moments, Moment{r, events})
		}
		if err := s.Apply(r); err != nil {
			return nil, err
		}
	}
	return moments, nil
}

// Size is what the newest report or reduction on the path says about the size
// of the next request, with the messages since as counted; 0 when nothing is
// known. Package token estimates better.
func (s *State) Size() int {
	ex, msgs, stale := s.LastExchange()
	if stale || ex == nil && s.lastEdit > 0 {
		last := s.layers.at(s.layers.len() - 1)
		if last.seq != s.lastEdit || last.red == nil || last.red.After == 0 {
			return 0 // something was restored since
		}
		n := last.red.After
		for i := len(s.seqs) - 1; i >= 0 && s.seqs[i] > last.seq; i-- {
			n += s.msgs[i].Tokens()
		}
		return n
	}
	if ex == nil || ex.size() == 0 {
		return 0
	}
	return ex.size() + s.tokens[len(s.msgs)] - s.tokens[msgs]
}

func (x *Exchange) size() int {
	if n := x.Usage.Prompt(); n > 0 {
		return n
	}
	return x.Estimated
}

func usage(size, limit int) ContextUsage {
	u := ContextUsage{CurrentSize: size, Limit: limit}
	if limit > 0 {
		u.Percentage = math.Round(float64(size)*1000/float64(limit)) / 10
	}
	return u
}

// scaled turns counted tokens into the provider's of the time.
func (r *Reduction) scaled(counted int) int {
	b := Budget{Scale: r.Scale}
	return b.Scaled(counted)
}

// events of a reduction: one for what went behind marks, one for what shows
// something else in place.
func (r *Reduction) events(seq Seq, e Effect, limit int) []Event {
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
		})
	case r.Stage == StageEvict && len(e.Messages) > 0:
		events = append(events, Rolled{
			Reduction:       seq,
			MessagesEvicted: len(e.Messages),
			TokensEvicted:   r.scaled(e.Tokens),
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

// StageEvict is the stage of a reduction whose marks tell of eviction, which
// readers hear of in an event of its own.
const StageEvict = "evict"

// StageOverflow is the stage of a step in an exchange's plan that tells of a
// prompt which the provider refused as too long, before the one of the exchange
// was sent: Before is the size it gave, After the most it takes, 0 where it did
// not say, and Skipped says so in words.
const StageOverflow = "overflow"

// restored is the size, in the provider's tokens, of what a restoration shows
// again as recorded.
func (s *State) restored(r Record) (int, error) {
	t, err := s.with(r)
	if err != nil {
		return 0, err
	}
	end := s.base[len(s.msgs)]
	n := 0
	s.cover.within(0, end, func(was interval) bool {
		if was.label == 0 {
			return true
		}
		red := s.layers.at(s.labels.at(was.label).layer).red
		t.cover.within(was.lo, was.hi, func(is interval) bool {
			if is.label == 0 {
				n += red.scaled(s.tokensIn(is.lo, is.hi))
			}
			return true
		})
		return true
	})
	return n, nil
}
