package exchange_test

import (
	"context"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// writer is a model that summarizes; during runs while it does.
type writer struct {
	during func()
	usage  furl.Usage
}

func (w writer) Summarize(_ context.Context, _ policy.SummaryRequest) (policy.Summary, error) {
	if w.during != nil {
		w.during()
	}
	return policy.Summary{Text: "They read files.", Model: "small", Usage: w.usage}, nil
}

// C10: a summary is prepared beside the requests, swapped in when something is
// hidden anyway, and never awaited.
func TestC10SummaryIsPreparedBeside(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "compaction", Window: 4000})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 9, 900))
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	if s.SummaryStage(fit) == nil || len(s.Reductions()) != 0 {
		t.Fatalf("a summary is not due at %d of %d tokens", fit.Plan.After, fit.Budget.Window)
	}
	// The session goes on in the meantime, and a second preparation waits.
	c := &policy.Compact{Summarizer: writer{during: func() {
		if ready, err := s.PrepareSummary(t.Context(), fit, &policy.Compact{}); ready || err != nil {
			t.Errorf("a second preparation gave %v, %v", ready, err)
		}
		appendAll(t, s, steps(t, 12, 900)[19:])
	}}}
	if ready, err := s.PrepareSummary(t.Context(), fit, c); !ready || err != nil {
		t.Fatal(ready, err)
	}
	if all.Stats().ReadySummaries != 1 || s.SummaryStage(fit) != nil || len(s.Reductions()) != 0 {
		t.Fatal("the summary is not ready, or recorded already")
	}
	if fit, err = s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
		t.Fatal(err)
	}
	list := s.Reductions()
	if len(list) == 0 || list[0].Summary != "They read files." || all.Stats().ReadySummaries > 0 {
		t.Fatalf("the reductions are %+v, want the summary first", list)
	}
	if !strings.Contains(encoded(t, fit.View), "They read files.") {
		t.Error("the view does not show the summary")
	}
	rec, err := s.EditSummary(t.Context(), list[0].Seq, "They read twelve files.")
	if err != nil || !strings.Contains(encoded(t, s.View("claude-sonnet-4-5")), "twelve") {
		t.Errorf("an edited summary is not shown: %v", err)
	}
	if _, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: rec.Seq}); err != nil || strings.Contains(encoded(t, s.View("claude-sonnet-4-5")), "twelve") {
		t.Errorf("a lifted edit is still shown: %v", err)
	}
	checked(t, s)
}

// Pitfall 7: the conversation was rewound while the summary was written.
func TestSummaryTooLate(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "compaction", Window: 4000})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 12, 900))
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	rewind := func() {
		if _, err := s.Rewind(t.Context(), 3); err != nil {
			t.Error(err)
		}
		appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text("another way"))})
		for range 2 {
			appendAll(t, s, []*furl.Message{message(t, furl.RoleUser, text(strings.Repeat("and more of it ", 500))), message(t, furl.RoleAssistant, text("well"))})
		}
	}
	if _, err := s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: writer{during: rewind}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Reductions() {
		if r.Summary == "They read files." {
			t.Error("a summary of what is not on the path was recorded")
		}
	}
	checked(t, s)
}

// A policy that asks a model leaves the session free while it waits.
func TestFitAskingLeavesTheSessionFree(t *testing.T) {
	var s *session.Session
	w := &writer{}
	all, _ := open(t, session.Options{Policy: "compaction", Window: 3000, Settings: policy.Settings{Summarizer: w}})
	s = all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 12, 900))
	w.during = func() {
		w.during = nil
		appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text("meanwhile"))})
	}
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	got := encoded(t, fit.View)
	if !strings.Contains(got, "They read files.") || !strings.Contains(got, "meanwhile") {
		t.Errorf("the view is %s", got)
	}
	checked(t, s)
}

// While a summary is written for one request, another of the same session comes
// in: each is sent its own history.
func TestRequestsWhileASummaryIsWritten(t *testing.T) {
	w := &writer{}
	all, _ := open(t, session.Options{Policy: "compaction", Window: 3000, Settings: policy.Settings{Summarizer: w}})
	a, b := newClient(t, all, "a"), newClient(t, all, "b")
	a.hints.Hint, b.hints.Hint = "one", "one"
	for range 5 {
		a.step()
	}
	b.add(furl.RoleUser, text("a side question"))
	times := 0
	w.during = func() {
		times++
		_, x := b.begin()
		b.reply(x, text("a side answer"))
		b.add(furl.RoleUser, text("and another"))
	}
	for range 6 {
		before := times
		x := a.step()
		a.verify(x)
		if asked := times - before; asked > 1 || asked == 1 && !strings.Contains(string(x.Body), "They read files.") {
			t.Errorf("asked for %d summaries, and sent %s; want the one that was written", asked, x.Body)
		}
		if strings.Contains(string(x.Body), "side") {
			t.Fatal("a request was sent another's history")
		}
	}
	if times == 0 {
		t.Error("no summary was asked for")
	}
	checked(t, a.last.Session)
}

// C10: an extract was faster than the summary of the same messages, which was
// paid for: it is shown all the same where that costs less than it did.
func TestC10SummaryOvertaken(t *testing.T) {
	dear := furl.Usage{Input: 100_000, Output: 1000}
	for _, tc := range []struct {
		name   string
		usage  furl.Usage
		before func(t *testing.T, s *session.Session) // the request that decides
		shown  bool
	}{
		{"it cost more", dear, nil, true},
		{"it cost less", furl.Usage{Input: 100, Output: 10}, nil, false},
		{"the prompt is long again", dear, func(t *testing.T, s *session.Session) { appendAll(t, s, steps(t, 21, 900)[25:]) }, false},
		{"somebody keeps what took its place", dear, func(t *testing.T, s *session.Session) {
			if err := s.Hold(t.Context(), furl.Keep, furl.Span{First: furl.Pos{Msg: 3}, Last: furl.Pos{Msg: 3}}); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"somebody edited what took its place", dear, func(t *testing.T, s *session.Session) {
			if _, err := s.EditSummary(t.Context(), s.Reductions()[0].Seq, "My own words."); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, _ := open(t, session.Options{Policy: "compaction", Window: 4000})
			s := all.Create(storage.Meta{})
			appendAll(t, s, steps(t, 9, 900))
			fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
			if err != nil {
				t.Fatal(err)
			}
			during := func() {
				appendAll(t, s, steps(t, 12, 900)[19:])
				if _, err := s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: writer{during, tc.usage}}); err != nil {
				t.Fatal(err)
			}
			first := s.Reductions()
			if len(first) == 0 || first[0].Stage != "extract" || all.Stats().ReadySummaries != 1 {
				t.Fatalf("the reductions are %+v, want an extract first", first)
			}
			if tc.before != nil {
				tc.before(t, s)
			}
			if fit, err = s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
				t.Fatal(err)
			}
			got := strings.Contains(encoded(t, fit.View), "They read files.")
			n, dollars := all.Stats().LateSummaries, all.Stats().LateCost
			if got != tc.shown || n == 1 == tc.shown || dollars > 0 == tc.shown || all.Stats().ReadySummaries > 0 {
				t.Fatalf("shown %v, want %v; %d late, for %f dollars", got, tc.shown, n, dollars)
			}
			if !tc.shown {
				checked(t, s)
				return
			}
			list := s.Reductions()
			last := list[len(list)-1]
			if last.Number != 2 || last.Archived == 0 || last.Before <= last.After {
				t.Errorf("recorded %+v", last)
			}
			// It can be lifted like any other, and brings everything back.
			if _, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: last.Seq}); err != nil {
				t.Fatal(err)
			}
			if got := encoded(t, s.View("claude-sonnet-4-5")); strings.Contains(got, "They read files.") || len(got) < 9*900 {
				t.Errorf("lifted, the view is %s", got)
			}
			checked(t, s)
		})
	}
}
