package web

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/event"
)

// A reduction that archives messages and shortens blocks is said once.
func TestSayOnce(t *testing.T) {
	both := []event.Event{event.Truncated{MessagesRemoved: 22, PrevContextTokens: 36_000}, event.Masked{Count: 7, TokensFreed: 27_000}}
	frame := string(New(nil).frameOf(nil, event.Moment{Events: both}))
	if !strings.Contains(frame, "Context Truncated") || strings.Contains(frame, "Context Masked") {
		t.Error(frame)
	}
	if frame := string(New(nil).frameOf(nil, event.Moment{Events: both[1:]})); !strings.Contains(frame, "Context Masked") {
		t.Error(frame)
	}
}

// A person is told of each event in a line, except of the size, which the meter shows.
func TestSay(t *testing.T) {
	at := event.Stamp(time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		name string
		e    event.Event
		want string
	}{
		{"event sliding_window_truncation", event.Truncated{Truncation: 4, MessagesRemoved: 12, PrevContextTokens: 90_000}, "Context Truncated — 12 messages archived, ~50,000 tokens freed"},
		{"event summary_requested", event.SummaryRequested{CurrentSize: 90_000, Limit: 100_000}, "A model writes a summary of 90,000 tokens"},
		{"event context_compacted", event.Compacted{Number: 2, MessagesArchived: 45, ContextSizeBefore: 190_000, Summary: "s"}, "Context Compacted #2 — 45 messages archived, ~150,000 tokens freed"},
		{"event context_compacted", event.Compacted{Number: 2, MessagesArchived: 45, ContextSizeBefore: 190_000, Summary: "s", Extract: true}, "Context Extracted #2 — 45 messages archived, ~150,000 tokens freed"},
		{"event context_usage", event.ContextUsage{CurrentSize: 1, Limit: 2, Percentage: 50}, ""},
		{"event context_rolled", event.Rolled{Reduction: 4, MessagesEvicted: 3, TokensEvicted: 1200, From: at, To: at}, "Context Rolled — 3 messages archived, ~1,200 tokens freed"},
		{"event observations_masked", event.Masked{Reduction: 4, Count: 1, TokensFreed: 900}, "Context Masked — 1 block shortened, ~900 tokens freed"},
		{"event reduction_skipped", event.Skipped{Stage: "mask", Reason: "too little to hide"}, ""},
		{"event restored", event.Restored{Reduction: 4, Tokens: 900}, "Context Restored — ~900 tokens visible again"},
		{"event rewound", event.Rewound{To: 7, Branch: 9}, "Rewound to record 7"},
		{"event overflow_recovered", event.OverflowRecovered{Reported: 9, Limit: 8}, "The provider refused the request as too long. A smaller one was sent."},
		{"event thinking_recovered", event.ThinkingRecovered{}, "The provider refused the reasoning of earlier replies. The request was sent without it."},
		{"event edit_repaired", event.EditRepaired{Files: "a.go", Tokens: 2900}, "An edit failed — the model sees the text of a.go again, ~2,900 tokens"},
		{"event warning", event.Warning{Code: "c", Text: "the window is unknown"}, "the window is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "event "+c.e.Name() {
				t.Errorf("the event is %s", c.e.Name())
			}
			if got := say(c.e, 40_000); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
