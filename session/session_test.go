package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

func TestAppendAndOpenAgain(t *testing.T) {
	all, store := inMemory(t, session.Options{})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 3, 100))
	if got, want := s.Meta().Title, "Find out why the build is slow."; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	again, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := encoded(t, again.View("claude-sonnet-4-5")), encoded(t, s.View("claude-sonnet-4-5")); got != want {
		t.Errorf("opened again, the view is\n%s\nwant\n%s", got, want)
	}
	if _, err := all.Open(t.Context(), "nobody"); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("opening a session that is not there gave %v, want ErrNoSession", err)
	}
}

func TestAppendAfterIsIdempotent(t *testing.T) {
	all, _ := inMemory(t, session.Options{})
	s := all.Create(storage.Meta{})
	msgs := steps(t, 1, 10)
	first, err := s.AppendAfter(t.Context(), 0, msgs...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.AppendAfter(t.Context(), 0, msgs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(first) || again[0].Seq != first[0].Seq || s.Head() != 3 {
		t.Errorf("repeating an append gave %d records and head %d, want the %d there were", len(again), s.Head(), len(first))
	}
	if _, err := s.AppendAfter(t.Context(), 1, message(t, furl.RoleUser, text("other"))); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("appending after a record with others after it gave %v, want ErrConflict", err)
	}
	if _, err := s.Append(t.Context(), message(t, furl.RoleAssistant, call("a", "read", `{}`)), message(t, furl.RoleUser, text("no"))); !errors.Is(err, furl.ErrOpenCall) {
		t.Errorf("words after an open call gave %v, want ErrOpenCall", err)
	}
	if s.Head() != 3 {
		t.Errorf("an append that failed left the head at %d, want 3", s.Head())
	}
}

// Two processes on one store: neither's appends are lost, and both see all.
func TestTwoProcesses(t *testing.T) {
	store := inmem.New()
	a, b := reopen(t, store, session.Options{}), reopen(t, store, session.Options{})
	one := a.Create(storage.Meta{})
	appendAll(t, one, steps(t, 1, 10))
	two, err := b.Open(t.Context(), one.ID())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for _, s := range []*session.Session{one, two} {
			appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text(fmt.Sprint("answer ", i))), message(t, furl.RoleUser, text("go on"))})
		}
	}
	if _, err := a.Open(t.Context(), one.ID()); err != nil {
		t.Fatal(err)
	}
	if got, want := encoded(t, one.View("m")), encoded(t, two.View("m")); got != want || one.Head() != 23 {
		t.Errorf("the two see\n%s\nand\n%s", got, want)
	}
}

func TestX2HiddenComesBack(t *testing.T) {
	all, _ := inMemory(t, session.Options{Policy: "rolling-mask-5", Window: 100_000})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 12, 400))
	before := encoded(t, s.View("m"))

	t.Run("X3 a preview tells and changes nothing", func(t *testing.T) {
		preview, err := s.Reduce(t.Context(), session.ReduceOptions{DryRun: true})
		if err != nil || len(preview.Planned) != 1 || preview.Planned[0].Blocks != 7 || preview.After >= preview.Before {
			t.Fatalf("a preview gave %+v, %v; want 7 results to be masked", preview, err)
		}
		if got := encoded(t, s.View("m")); got != before {
			t.Error("a preview changed the view")
		}
	})
	fit, err := s.Fit(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	if o, err := s.Outcome(fit); err != nil || len(o.Planned) != 1 || len(o.Planned[0].Placeholders) != 7 || o.Planned[0].Placeholders[0].Age != 11 {
		t.Errorf("the outcome is %+v, %v; want 7 results of which the oldest is 11 steps old", o, err)
	}
	if n := strings.Count(encoded(t, fit.View), "observation masked"); n != 7 {
		t.Errorf("%d results are masked, want 7", n)
	}
	list := s.Reductions()
	t.Run("X4 each reduction says why and what", func(t *testing.T) {
		if len(list) != 1 || list[0].State != "active" || list[0].Blocks != 7 || list[0].Reason == "" || list[0].Freed() <= 0 {
			t.Fatalf("the reductions are %+v, want one active of 7 blocks", list)
		}
	})
	hits, err := s.Search(t.Context(), "marker_2", session.SearchOptions{})
	if err != nil || len(hits) == 0 || hits[0].Tool != "read" || !hits[0].Hidden {
		t.Fatalf("a search among what is hidden gave %+v, %v; want the result of file 2", hits, err)
	}
	if hits, _ := s.Search(t.Context(), "marker_11", session.SearchOptions{}); len(hits) > 0 && strings.Contains(hits[0].Excerpt, "marker_11 ") {
		t.Errorf("a search among what is hidden found the visible %+v", hits[0])
	}
	got, err := s.Get(hits[0].Handle)
	if err != nil || !strings.HasPrefix(got.Text, "file 2: marker_2 ") {
		t.Errorf("get %s gave %+v, %v", hits[0].Handle, got, err)
	}
	one, err := s.Restore(t.Context(), session.RestoreOptions{Spans: []furl.Span{{First: hits[0].Pos, Last: hits[0].Pos}}})
	if err != nil || one.Tokens == 0 {
		t.Errorf("opening one result gave %+v, %v", one, err)
	}
	lifted, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: list[0].Seq})
	if err != nil || lifted.Tokens == 0 {
		t.Errorf("a lift gave %+v, %v", lifted, err)
	}
	if got := encoded(t, s.View("m")); got != before {
		t.Errorf("with all lifted (X2) the view is\n%s\nwant\n%s", got, before)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the check found %v, %v", problems, err)
	}
}

// T4: rewinding to before a reduction shows again what it hid, and the answer
// says where.
func TestT4RewindShowsWhatWasHidden(t *testing.T) {
	all, _ := inMemory(t, session.Options{Policy: "sliding-window", Window: 2000})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 10, 800))
	before, head := encoded(t, s.View("m")), s.Head()
	if _, err := s.Fit(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if encoded(t, s.View("m")) == before {
		t.Fatal("nothing was hidden")
	}
	got, err := s.Rewind(t.Context(), head)
	if err != nil || got.To != head || got.Messages != 21 {
		t.Errorf("the rewind gave %+v, %v; want to %d", got, err, head)
	}
	if encoded(t, s.View("m")) != before {
		t.Error("what was hidden after the record is not visible again")
	}
	inside, err := s.Rewind(t.Context(), 2)
	if err != nil || inside.To != 1 {
		t.Errorf("a rewind into a step gave %+v, %v; want to 1, before it", inside, err)
	}
	if b := s.Branches(); len(b) != 2 || !b[0].Current || b[1].Head != got.Branch {
		t.Errorf("the branches are %+v, want the current one and that left at %d", b, got.Branch)
	}
	if _, err := s.Rewind(t.Context(), 999); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("a rewind to a record there is not gave %v, want ErrNotOnPath", err)
	}
}

func TestForkHasTheSameNumbers(t *testing.T) {
	all, _ := inMemory(t, session.Options{Policy: "rolling-mask-5"})
	s := all.Create(storage.Meta{Hint: "client-1"})
	appendAll(t, s, steps(t, 10, 100))
	if _, err := s.Fit(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	f, err := all.Fork(t.Context(), s, 8)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.Meta(); m.ForkOf != s.ID() || m.ForkAt != 8 || m.Hint != "" {
		t.Errorf("the fork's meta is %+v", m)
	}
	a, err1 := s.Get("furl:3.0")
	b, err2 := f.Get("furl:3.0")
	if err := errors.Join(err1, err2); err != nil || a.Text != b.Text || f.Head() != 7 {
		t.Errorf("the fork goes on from %d, want 7, before the step; %v", f.Head(), err)
	}
}

// A4, C1: a session's own settings survive a restart and beat the options.
func TestA4SettingsSurviveARestart(t *testing.T) {
	store := inmem.New()
	s := reopen(t, store, session.Options{Policy: "none"}).Create(storage.Meta{})
	appendAll(t, s, steps(t, 10, 800))
	masked := func(s *session.Session) int {
		f, err := s.Fit(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(encoded(t, f.View), "steps ago]")
	}
	if n := masked(s); n != 0 {
		t.Fatalf("%d results hidden by policy none", n)
	}
	if err := s.Set(t.Context(), "rolling_context", "on"); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "rolling_context", "perhaps"); err == nil {
		t.Error("a value that makes no sense was taken")
	}
	again, err := reopen(t, store, session.Options{Policy: "none"}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if n := masked(again); n == 0 {
		t.Error("A4: rolling context is on, and nothing was hidden after a restart")
	}
	t.Run("C1 off for all beats a session's own", func(t *testing.T) { testOffForAll(t, masked) })
}

func testOffForAll(t *testing.T, masked func(*session.Session) int) {
	off := reopen(t, inmem.New(), session.Options{Policy: "tool-age", Settings: policy.Settings{Off: true}}).Create(storage.Meta{})
	appendAll(t, off, steps(t, 10, 800))
	if err := off.Set(t.Context(), "context_management_enabled", "on"); err != nil {
		t.Fatal(err)
	}
	if n := masked(off); n != 0 {
		t.Error("C1: context management is off for all, and something was hidden")
	}
}

// The meter learns from what was reported: the size of the next request is what
// the last one had, and what was added.
func TestObserveCalibrates(t *testing.T) {
	all, store := inMemory(t, session.Options{Policy: "none"})
	s := all.Create(storage.Meta{})
	msgs := steps(t, 6, 300)
	appendAll(t, s, msgs[:1])
	for i := 1; i < len(msgs); i += 2 {
		fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
		if err != nil {
			t.Fatal(err)
		}
		reply := &protocol.Reply{ID: fmt.Sprint("msg_", i), Model: "claude-sonnet-4-5", Messages: []*furl.Message{msgs[i]}, Usage: furl.Usage{Input: 5000 + fit.View.Tokens*2, Output: 60}}
		if err := s.Observe(t.Context(), fit, reply); err != nil {
			t.Fatal(err)
		}
		if err := s.Observe(t.Context(), fit, reply); err != nil { // twice is once
			t.Fatal(err)
		}
		appendAll(t, s, msgs[i+1:i+2])
	}
	if n := len(s.Records(0)); n != len(msgs)+6 {
		t.Errorf("there are %d records, want %d messages and 6 exchanges", n, len(msgs))
	}
	want := 5000 + s.View("claude-sonnet-4-5").Tokens*2
	u := s.Context("claude-sonnet-4-5")
	if d := u.Size - want; d < -200 || d > 200 {
		t.Errorf("the context is taken for %d tokens, the provider would say %d", u.Size, want)
	}
	again, err := reopen(t, store, session.Options{Policy: "none"}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Context("claude-sonnet-4-5"); got.Size != u.Size {
		t.Errorf("opened again the context is taken for %d tokens, before for %d", got.Size, u.Size)
	}
	total := 0
	for _, p := range u.Parts {
		total += p.Tokens
	}
	if total != u.Limit {
		t.Errorf("the parts sum up to %d, want the window of %d: %+v", total, u.Limit, u.Parts)
	}
}

func TestFind(t *testing.T) {
	names := []furl.SessionID{"abc1", "abd2", "xyz3"}
	all, _ := inMemory(t, session.Options{NewID: func() furl.SessionID { id := names[0]; names = names[1:]; return id }})
	for _, title := range []string{"Fix the parser", "Fix the lexer", "Write docs"} {
		appendAll(t, all.Create(storage.Meta{Title: title}), steps(t, 1, 10))
	}
	for _, tt := range []struct {
		name string
		want furl.SessionID
	}{
		{"abc1", "abc1"}, {"xy", "xyz3"}, {"fix the lexer", "abd2"}, {"write", "xyz3"}, {"parser", "abc1"}, {"abd…", "abd2"}, {"Fix the le…", "abd2"}, {session.Latest, "xyz3"},
	} {
		s, err := all.Find(t.Context(), tt.name)
		if err != nil || s.ID() != tt.want {
			t.Errorf("find %q gave %v, %v; want %s", tt.name, s, err, tt.want)
		}
	}
	var several *session.AmbiguousError
	if _, err := all.Find(t.Context(), "ab"); !errors.As(err, &several) || len(several.Sessions) != 2 {
		t.Errorf("an ambiguous name gave %v", err)
	}
	if _, err := all.Find(t.Context(), "nothing like it"); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("an unknown name gave %v, want ErrNoSession", err)
	}
}

func TestWatch(t *testing.T) {
	store := inmem.New()
	all := reopen(t, store, session.Options{Policy: "rolling-mask-5", Window: 100_000})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 8, 300))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	var seen []furl.Seq
	var events []string
	for m, err := range s.Watch(ctx, 15) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, m.Record.Seq)
		for _, e := range m.Events {
			events = append(events, e.Name())
		}
		switch m.Record.Seq {
		case 17:
			if _, err := s.Fit(ctx, "m"); err != nil {
				t.Fatal(err)
			}
		case 18: // by another process
			appendAll(t, other, []*furl.Message{message(t, furl.RoleAssistant, text("done"))})
		case 19:
			cancel()
		}
	}
	if got := fmt.Sprint(seen); got != "[16 17 18 19]" {
		t.Errorf("watched %s, want [16 17 18 19]", got)
	}
	if len(events) == 0 || events[0] != "observations_masked" {
		t.Errorf("the events were %v, want observations_masked first", events)
	}
}

func TestSearchAllSessions(t *testing.T) {
	all, _ := inMemory(t, session.Options{})
	for _, title := range []string{"one", "two"} {
		appendAll(t, all.Create(storage.Meta{Title: title}), steps(t, 3, 100))
	}
	appendAll(t, all.For("other").Create(storage.Meta{}), steps(t, 3, 100))
	hits, err := all.Search(t.Context(), "marker_1", session.SearchOptions{Limit: 2})
	if err != nil || len(hits) != 2 || hits[0].Session == hits[1].Session || hits[0].Hidden {
		t.Fatalf("a search of all sessions gave %+v, %v; want the one of each of the two", hits, err)
	}
	for _, h := range hits {
		of, err := all.Open(t.Context(), h.Session)
		if err != nil {
			t.Fatal(err)
		}
		got, err := of.Get(h.Handle)
		if err != nil || got.Session != h.Session || !strings.Contains(got.Text, "marker_1 ") {
			t.Errorf("get %s gave %+v, %v", h.Handle, got, err)
		}
	}
	s := all.Create(storage.Meta{})
	if hits, err := s.Search(t.Context(), "anything", session.SearchOptions{}); err != nil || len(hits) > 0 {
		t.Errorf("a search of an empty session gave %v, %v", hits, err)
	}
}

func TestHandlesCoverBlocksOrMessages(t *testing.T) {
	all, _ := inMemory(t, session.Options{})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 2, 100))
	spans, err := s.Spans("furl:2", "furl:3.0")
	if err != nil || len(spans) != 2 || spans[0].Last.Block != 1 || spans[1] != (furl.Span{First: furl.Pos{Msg: 3}, Last: furl.Pos{Msg: 3}}) {
		t.Errorf("the handles cover %+v, %v", spans, err)
	}
	whole, err := s.Get("furl:2")
	if err != nil || whole.Kind != "message" || !strings.Contains(whole.Text, "Reading file 0.\n\n{") {
		t.Errorf("a whole message is %+v, %v", whole, err)
	}
	for _, bad := range []string{"furl:2.9", "furl:99", "furl:other/2.0"} {
		if _, err := s.Get(bad); !errors.Is(err, furl.ErrNotOnPath) {
			t.Errorf("get %s gave %v, want ErrNotOnPath", bad, err)
		}
		if _, err := s.Spans(bad); !errors.Is(err, furl.ErrNotOnPath) {
			t.Errorf("the span of %s gave %v, want ErrNotOnPath", bad, err)
		}
	}
	if _, err := s.Get("nonsense"); err == nil {
		t.Error("nonsense is a handle")
	}
}
