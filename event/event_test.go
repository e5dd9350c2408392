package event_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

// TestEvents holds each event to its JSON, field by field.
func TestEvents(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("", 3600))
	for _, tt := range []struct {
		name string
		ev   event.Event
		want string
	}{
		{"event sliding_window_truncation", event.Truncated{Truncation: 7, MessagesRemoved: 4, PrevContextTokens: 900},
			`{"truncation_id":7,"messages_removed":4,"prev_context_tokens":900}`},
		{"event summary_requested", event.SummaryRequested{CurrentSize: 900, Limit: 1000}, `{"current_size":900,"limit":1000}`},
		{"event context_compacted", event.Compacted{Number: 1, MessagesArchived: 45, ContextSizeBefore: 900, Summary: "s"},
			`{"compaction_number":1,"messages_archived":45,"context_size_before":900,"summary":"s"}`},
		{"event context_usage", event.ContextUsage{CurrentSize: 900, Limit: 1000, Percentage: 90},
			`{"current_size":900,"limit":1000,"percentage":90}`},
		{"event context_rolled", event.Rolled{Reduction: 7, MessagesEvicted: 3, TokensEvicted: 50, From: event.Stamp(at)},
			`{"reduction_id":7,"messages_evicted":3,"tokens_evicted":50,"from":"2026-03-01T08:00:00Z","to":"unknown"}`},
		{"event observations_masked", event.Masked{Reduction: 7, Count: 2, Chars: 30, TokensFreed: 9},
			`{"reduction_id":7,"masked_count":2,"masked_chars":30,"tokens_freed":9}`},
		{"event reduction_skipped", event.Skipped{Stage: "mask", Reason: "why"}, `{"stage":"mask","reason":"why"}`},
		{"event restored", event.Restored{Reduction: 7, Tokens: 50}, `{"reduction_id":7,"tokens":50}`},
		{"event rewound", event.Rewound{To: 3, Branch: 9}, `{"to":3,"branch":9}`},
		{"event overflow_recovered", event.OverflowRecovered{Reported: 1200, Limit: 1000}, `{"reported":1200,"limit":1000}`},
		{"event thinking_recovered", event.ThinkingRecovered{}, `{}`},
		{"event edit_repaired", event.EditRepaired{Files: "a.go", Tokens: 50}, `{"files":"a.go","tokens":50}`},
		{"event warning", event.Warning{Code: "no_recall", Text: "t"}, `{"code":"no_recall","text":"t"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.ev)
			if err != nil || string(got) != tt.want {
				t.Errorf("JSON %s, %v; want %s", got, err, tt.want)
			}
			if name := tt.ev.Name(); "event "+name != tt.name {
				t.Errorf("name %q", name)
			}
			back := reflect.New(reflect.TypeOf(tt.ev))
			if err := json.Unmarshal(got, back.Interface()); err != nil {
				t.Errorf("read back: %v", err)
			}
		})
	}
	var s event.Stamp
	if err := s.UnmarshalText([]byte("yesterday")); err == nil {
		t.Error("yesterday is taken for a time")
	}
}

// story is a log whose messages weigh ten tokens a block.
type story struct {
	t   *testing.T
	log *furl.Log
}

func (s story) add(body furl.Body) furl.Seq {
	s.t.Helper()
	if m, ok := body.(*furl.Message); ok {
		for i := range m.Blocks {
			m.Blocks[i].Tokens = 10
		}
	}
	r, err := s.log.Append(s.log.Head(), time.Unix(int64(s.log.Len()), 0), furl.Client, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Seq
}

// tell is a message each of user and assistant, with a call and its result in
// between.
func (s story) tell() {
	s.add(furl.TextMessage(furl.RoleUser, "go"))
	s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "a", Name: "read", Args: []byte(`{}`)}}})
	s.add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "a", Text: "héllo"}}})
	s.add(furl.TextMessage(furl.RoleAssistant, "done"))
}

func span(from, to furl.Seq) []furl.Span {
	return []furl.Span{{First: furl.Pos{Msg: from}, Last: furl.Pos{Msg: to}}}
}

func truncation(from, to furl.Seq) *furl.Reduction {
	m := furl.TextMessage(furl.RoleUser, "hidden")
	m.Blocks[0].Tokens = 3
	return &furl.Reduction{
		Stage: "truncate", Before: 100, After: 53, Scale: 2,
		Items: []furl.Item{{Spans: span(from, to), Show: furl.Mark{Messages: []*furl.Message{m}}}},
	}
}

// names gives the names of what a path's records mean.
func names(t *testing.T, log *furl.Log, head furl.Seq) []string {
	t.Helper()
	moments, err := event.Timeline(log, 0, head, 200)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range moments {
		for _, e := range m.Events {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestTimeline(t *testing.T) {
	t.Run("T6 a truncation leaves the timeline when rewound past", func(t *testing.T) {
		s := story{t, furl.NewLog()}
		s.tell()
		s.tell()
		before := s.log.Head()
		red := s.add(truncation(2, 4))
		moments, err := event.Timeline(s.log, 0, s.log.Head(), 200)
		if err != nil {
			t.Fatal(err)
		}
		want := event.Truncated{Truncation: red, MessagesRemoved: 3, PrevContextTokens: 100}
		if len(moments) != 1 || moments[0].Record.Seq != red || !slices.Contains(moments[0].Events, event.Event(want)) {
			t.Fatalf("timeline %+v, want %+v", moments, want)
		}
		left := s.log.Head()
		r, err := s.log.Rewind(before, time.Time{}, furl.Person)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, s.log, s.log.Head()); len(got) != 0 {
			t.Errorf("after the rewind the timeline still tells of %v", got)
		}
		if got := event.Of(s.log.State(), r, 200); !slices.Contains(got, event.Event(event.Rewound{To: before, Branch: left})) {
			t.Errorf("the rewind itself is %+v", got)
		}
	})
	t.Run("event overflow_recovered follows from the exchange", func(t *testing.T) {
		s := story{t, furl.NewLog()}
		s.tell()
		s.add(&furl.Exchange{Plan: []furl.PlanStep{{Stage: event.StageOverflow, Skipped: "too long", Before: 1200, After: 1000}, {Stage: "mask"}}})
		moments, err := event.Timeline(s.log, 0, s.log.Head(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := moments[len(moments)-1].Events, []event.Event{event.OverflowRecovered{Reported: 1200, Limit: 1000}}; !slices.Equal(got, want) {
			t.Errorf("the events are %+v, want %+v", got, want)
		}
	})
	t.Run("C7 a session in events", func(t *testing.T) {
		s := story{t, furl.NewLog()}
		s.tell()
		s.add(&furl.Exchange{
			Usage: furl.Usage{Input: 100, CacheRead: 20, CacheWrite: 30},
			Plan:  []furl.PlanStep{{Stage: "mask", Skipped: "why"}, {Stage: "truncate"}},
		})
		s.tell()
		compaction := truncation(1, 4)
		compaction.Stage, compaction.Summary = "compact", &furl.Summary{Number: 1, Text: "s", Messages: 4, Model: "m", Request: "sum up"}
		s.add(compaction)
		got := strings.Join(names(t, s.log, s.log.Head()), " ")
		want := "reduction_skipped context_usage context_usage context_usage context_usage context_usage " +
			"summary_requested context_compacted context_usage"
		if got != want {
			t.Errorf("events are\n%s\nwant\n%s", got, want)
		}
	})
}

func TestEventsOfReductions(t *testing.T) {
	s := story{t, furl.NewLog()}
	s.tell()
	s.tell()
	s.tell()
	last := func() []event.Event {
		t.Helper()
		moments, err := event.Timeline(s.log, 0, s.log.Head(), 200)
		if err != nil {
			t.Fatal(err)
		}
		return moments[len(moments)-1].Events
	}
	mask := &furl.Reduction{Stage: "mask", Before: 120, After: 114, Items: []furl.Item{
		{Spans: span(3, 3), Show: furl.In{Text: "x", Tokens: 4}},
	}}
	masked := s.add(mask)
	if got, want := last()[0], (event.Masked{Reduction: masked, Count: 1, Chars: 4, TokensFreed: 6}); got != event.Event(want) {
		t.Errorf("a mask is %+v, want %+v", got, want)
	}
	again := &furl.Reduction{Stage: "mask", Before: 114, After: 112, Items: []furl.Item{
		{Spans: span(3, 3), Show: furl.In{Text: "", Tokens: 2}},
	}}
	over := s.add(again)
	if got, want := last()[0], (event.Masked{Reduction: over, Count: 1, Chars: 1, TokensFreed: 2}); got != event.Event(want) {
		t.Errorf("a mask over a mask is %+v, want %+v", got, want)
	}
	s.add(&furl.Restoration{Of: over})
	if got, want := last()[0], (event.Restored{Reduction: over, Tokens: 4}); got != event.Event(want) {
		t.Errorf("undoing it is %+v, want the text of the first: %+v", got, want)
	}
	first := truncation(2, 4)
	first.Stage = "evict"
	s.add(first)
	nested := truncation(2, 8)
	nested.Stage = "evict"
	evicted := s.add(nested)
	want := event.Rolled{
		Reduction: evicted, MessagesEvicted: 4, TokensEvicted: 80,
		From: event.Stamp(time.Unix(4, 0)), To: event.Stamp(time.Unix(7, 0)),
	}
	if got := last()[0]; got != event.Event(want) {
		t.Errorf("a second eviction is %+v, want what it newly hid: %+v", got, want)
	}
	if got, want := last()[1], (event.ContextUsage{CurrentSize: 53, Limit: 200, Percentage: 26.5}); got != event.Event(want) {
		t.Errorf("the usage after it is %+v, want %+v", got, want)
	}
	s.add(&furl.Restoration{Of: evicted})
	if got, want := last()[0], (event.Restored{Reduction: evicted, Tokens: 80}); got != event.Event(want) {
		t.Errorf("lifting it is %+v, want %+v", got, want)
	}
	s.add(&furl.Restoration{Open: true, Spans: span(3, 3)})
	if got, want := last()[0], (event.Restored{Tokens: 40}); got != event.Event(want) {
		t.Errorf("opening a result under a mark is %+v, want its whole step: %+v", got, want)
	}
	n := len(names(t, s.log, s.log.Head()))
	s.add(&furl.Restoration{Spans: span(5, 5), Hold: furl.Pin})
	if got := len(names(t, s.log, s.log.Head())); got != n {
		t.Error("a pin alone makes an event")
	}
	bad := furl.Record{Seq: 99, Body: truncation(77, 78)}
	if got := event.Of(s.log.State(), bad, 0); got != nil {
		t.Errorf("a reduction of nothing on the path is %+v", got)
	}
}

func TestTimelineOfAnUnknownRecord(t *testing.T) {
	log := story{t, furl.NewLog()}
	log.tell()
	for _, seq := range []furl.Seq{5, 99, math.MaxUint64} {
		if _, err := event.Timeline(log.log, 0, seq, 0); !errors.Is(err, furl.ErrNotOnPath) {
			t.Errorf("timeline to %d: %v, want ErrNotOnPath", seq, err)
		}
	}
}

// A warning is told with the first request that has it, not with each.
func TestR5WarnedOnce(t *testing.T) {
	s := story{t, furl.NewLog()}
	s.tell()
	plan := []furl.PlanStep{{Stage: event.StageWarning + "no_recall", Skipped: "rolling needs recall"}}
	want := event.Event(event.Warning{Code: "no_recall", Text: "rolling needs recall"})
	for i, plan := range [][]furl.PlanStep{plan, plan, nil, plan} {
		r := furl.Record{Seq: furl.Seq(s.log.Len() + 1), Parent: s.log.Head(), Body: &furl.Exchange{Plan: plan}}
		if got, first := slices.Contains(event.Of(s.log.State(), r, 0), want), i == 0 || i == 3; got != first {
			t.Errorf("request %d: told %v, want %v", i+1, got, first)
		}
		s.add(r.Body)
	}
}
