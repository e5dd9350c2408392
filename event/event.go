// Package event tells what happened to a session's context, in the form that
// every reader gets: the library, server-sent events, the command line and the
// page. Events follow from the records of a session's log.
package event

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// Event is something that happened to a session's context. Each event marshals
// to a JSON object whose sizes and counts are integers, in the provider's
// tokens. Most events follow from a record, see Of.
type Event interface {
	// Name is the event's name on the wire, such as "context_rolled".
	Name() string
	event()
}

// Truncated tells that old messages went behind a mark without a summary. It
// asks nothing of the reader.
type Truncated struct {
	Truncation        furl.Seq `json:"truncation_id"`
	MessagesRemoved   int      `json:"messages_removed"`
	PrevContextTokens int      `json:"prev_context_tokens"`
}

// SummaryRequested tells that a model is asked for a summary.
type SummaryRequested struct {
	CurrentSize int `json:"current_size"`
	Limit       int `json:"limit"`
}

// Compacted tells that old messages went behind a summary or, if Extract is set, behind an
// extract of their own words.
type Compacted struct {
	Number            int    `json:"compaction_number"`
	MessagesArchived  int    `json:"messages_archived"`
	ContextSizeBefore int    `json:"context_size_before"`
	Summary           string `json:"summary"`
	Extract           bool   `json:"extract,omitempty"`
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
	Reduction       furl.Seq `json:"reduction_id"`
	MessagesEvicted int      `json:"messages_evicted"`
	TokensEvicted   int      `json:"tokens_evicted"`
	From            Stamp    `json:"from"`
	To              Stamp    `json:"to"`
}

// Masked tells that blocks show something else in their place.
type Masked struct {
	Reduction   furl.Seq `json:"reduction_id"`
	Count       int      `json:"masked_count"`
	Chars       int      `json:"masked_chars"`
	TokensFreed int      `json:"tokens_freed"`
}

// Skipped tells that a stage was due and did nothing.
type Skipped struct {
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
}

// Warning tells a person about how a policy works here.
type Warning furl.Warning

// Restored tells that a restoration shows hidden blocks again: as recorded, or as an older
// reduction shows them. Reduction is the one that was undone, 0 if blocks were expanded.
type Restored struct {
	Reduction furl.Seq `json:"reduction_id"`
	Tokens    int      `json:"tokens"`
}

// Rewound tells that the conversation goes on from To. Branch is the record
// at the end of the branch that was left.
type Rewound struct {
	To     furl.Seq `json:"to"`
	Branch furl.Seq `json:"branch"`
}

// OverflowRecovered tells that the provider refused a prompt as too long and a
// smaller one was sent instead. Reported is the size it gave, 0 if none.
type OverflowRecovered struct {
	Reported int `json:"reported"`
	Limit    int `json:"limit"`
}

// ThinkingRecovered tells that the provider refused thinking of earlier replies and the
// prompt was sent again without thinking.
type ThinkingRecovered struct{}

// EditRepaired tells that an edit failed because the model did not see the text of the file,
// and that this text is shown again. Files are the names, separated by commas, and Tokens what
// that added to the prompt.
type EditRepaired struct {
	Files  string `json:"files"`
	Tokens int    `json:"tokens"`
}

// Name is "sliding_window_truncation".
func (Truncated) Name() string { return "sliding_window_truncation" }

// Name is "summary_requested".
func (SummaryRequested) Name() string { return "summary_requested" }

// Name is "context_compacted".
func (Compacted) Name() string { return "context_compacted" }

// Name is "context_usage".
func (ContextUsage) Name() string { return "context_usage" }

// Name is "context_rolled".
func (Rolled) Name() string { return "context_rolled" }

// Name is "observations_masked".
func (Masked) Name() string { return "observations_masked" }

// Name is "reduction_skipped".
func (Skipped) Name() string { return "reduction_skipped" }

// Name is "restored".
func (Restored) Name() string { return "restored" }

// Name is "rewound".
func (Rewound) Name() string { return "rewound" }

// Name is "overflow_recovered".
func (OverflowRecovered) Name() string { return "overflow_recovered" }

// Name is "thinking_recovered".
func (ThinkingRecovered) Name() string { return "thinking_recovered" }

// Name is "edit_repaired".
func (EditRepaired) Name() string { return "edit_repaired" }

// Name is "warning".
func (Warning) Name() string { return "warning" }

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
func (ThinkingRecovered) event() {}
func (EditRepaired) event()      {}
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
