package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// writer is a model that summarizes; during runs while it does.
type writer struct{ during func() }

func (w writer) Summarize(_ context.Context, _ policy.SummaryRequest) (policy.Summary, error) {
	if w.during != nil {
		w.during()
	}
	return policy.Summary{Text: "They read files.", Model: "small"}, nil
}

// C10: a summary is prepared beside the requests, swapped in when something is
// hidden anyway, and never awaited.
func TestC10SummaryIsPreparedBeside(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "compaction", Window: 4000})
	s := all.Create(furl.Meta{})
	appendAll(t, s, steps(t, 9, 900))
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	if !s.SummaryDue(fit) || len(s.Reductions()) != 0 {
		t.Fatalf("a summary is not due at %d of %d tokens", fit.Plan.After, fit.Budget.Window)
	}
	// The session goes on in the meantime, and a second preparation waits.
	c := &policy.Compact{Summarizer: writer{during: func() {
		if err := s.PrepareSummary(t.Context(), fit, &policy.Compact{}); !errors.Is(err, session.ErrPreparing) {
			t.Errorf("a second preparation gave %v, want ErrPreparing", err)
		}
		appendAll(t, s, steps(t, 12, 900)[19:])
	}}}
	if err := s.PrepareSummary(t.Context(), fit, c); err != nil {
		t.Fatal(err)
	}
	if !s.SummaryReady() || s.SummaryDue(fit) || len(s.Reductions()) != 0 {
		t.Fatal("the summary is not ready, or recorded already")
	}
	if fit, err = s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
		t.Fatal(err)
	}
	list := s.Reductions()
	if len(list) == 0 || list[0].Summary != "They read files." || s.SummaryReady() {
		t.Fatalf("the reductions are %+v, want the summary first", list)
	}
	if !strings.Contains(encoded(t, fit.View), "They read files.") {
		t.Error("the view does not show the summary")
	}
	rec, err := s.EditSummary(t.Context(), list[0].Seq, "They read twelve files.")
	if err != nil || !strings.Contains(encoded(t, s.View("claude-sonnet-4-5")), "twelve") {
		t.Errorf("an edited summary is not shown: %v", err)
	}
	if _, err := s.Lift(t.Context(), rec.Seq); err != nil || strings.Contains(encoded(t, s.View("claude-sonnet-4-5")), "twelve") {
		t.Errorf("a lifted edit is still shown: %v", err)
	}
	checked(t, s)
}

// Pitfall 7: the conversation was rewound while the summary was written.
func TestSummaryTooLate(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "compaction", Window: 4000})
	s := all.Create(furl.Meta{})
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
	if err := s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: writer{during: rewind}}); err != nil {
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
	all, _ := open(t, session.Options{Policy: "compaction", Window: 3000, PolicyOptions: policy.Options{Summarizer: w}})
	s = all.Create(furl.Meta{})
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
	all, _ := open(t, session.Options{Policy: "compaction", Window: 3000, PolicyOptions: policy.Options{Summarizer: w}})
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
		x := a.step()
		a.verify(x)
		if strings.Contains(string(x.Body), "side") {
			t.Fatal("a request was sent another's history")
		}
	}
	if times == 0 {
		t.Error("no summary was asked for")
	}
	checked(t, a.last.Session)
}
