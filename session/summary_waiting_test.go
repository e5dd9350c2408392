package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// summarizer is a model that summarizes.
type summarizer struct{}

func (summarizer) Summarize(context.Context, policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{Text: "They read files.", Model: "small", Usage: furl.Usage{Input: 3000, Output: 10}, Cost: 0.25}, nil
}

const waitingModel = "claude-sonnet-4-5"

// waiting returns a session with a summary that waits for approval, in a store.
func waiting(t *testing.T, o session.Options) (*session.Session, storage.Store, *policy.Fit) {
	t.Helper()
	store := inmem.New()
	o.Policy, o.Window = "compaction", 4000
	s := reopen(t, store, o).Create(storage.Meta{})
	appendAll(t, s, steps(t, 9, 900))
	if o.AskFirst == nil {
		if err := s.Set(t.Context(), "ask_first", "on"); err != nil {
			t.Fatal(err)
		}
	}
	fit := fitted(t, s)
	stage := s.SummaryStage(fit)
	if stage == nil {
		t.Fatal("no summary is due")
	}
	stage.Summarizer = summarizer{}
	if ready, err := s.PrepareSummary(t.Context(), fit, stage); !ready || err != nil {
		t.Fatal(ready, err)
	}
	return s, store, fit
}

func fitted(t *testing.T, s *session.Session) *policy.Fit {
	t.Helper()
	fit, err := s.Fit(t.Context(), waitingModel)
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

// otherProcess opens the session as another process that uses the store.
func otherProcess(t *testing.T, store storage.Store, s *session.Session) *session.Session {
	t.Helper()
	other, err := reopen(t, store, session.Options{Policy: "compaction", Window: 4000}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// C10: with ask_first, a summary waits for approval, also if the process is killed. The
// other stages keep the prompt in the window. A person edits and approves it in another
// process; its texts stay in the log.
func TestC10SummaryWaitsForApproval(t *testing.T) {
	s, store, fit := waiting(t, session.Options{})
	if len(s.Reductions()) != 0 || s.SummaryStage(fit) != nil {
		t.Fatal("the summary was recorded, or another one is due")
	}
	appendAll(t, s, steps(t, 14, 900)[19:])
	fit = fitted(t, s)
	if fit.Plan.After > 4000 || strings.Contains(encoded(t, fit.View), "They read files.") {
		t.Fatalf("the prompt has %d tokens of 4,000, or shows the summary", fit.Plan.After)
	}
	if len(fit.Plan.Steps) == 0 || fit.Plan.Steps[0].Skipped != "a summary waits for approval" {
		t.Errorf("the plan does not report the summary: %+v", fit.Plan.Steps)
	}
	if s.SummaryStage(fit) != nil {
		t.Error("a second summary is due")
	}
	other := otherProcess(t, store, s)
	w := other.WaitingSummary()
	if w == nil || w.State != "waiting" || w.Summary != "They read files." || w.Model != "small" || w.Archived == 0 || len(w.CoveredBy) == 0 {
		t.Fatalf("the waiting summary is %+v", w)
	}
	if _, err := other.EditSummary(t.Context(), 0, " They read nine files. "); err != nil {
		t.Fatal(err)
	}
	if _, err := other.EditSummary(t.Context(), 0, " "); !errors.Is(err, policy.ErrNoSummary) {
		t.Errorf("an empty text: %v", err)
	}
	if w := otherProcess(t, store, s).WaitingSummary(); w == nil || w.Summary != "They read nine files." {
		t.Fatalf("the edited summary is %+v", w)
	}
	rec, err := other.DecideSummary(t.Context(), true)
	if err != nil || rec != other.Head() {
		t.Fatal(rec, err)
	}
	if other.WaitingSummary() != nil {
		t.Error("the summary still waits")
	}
	var texts []string
	for _, r := range other.Reductions() {
		if r.Number == other.Reductions()[len(other.Reductions())-1].Number && r.Stage == "compact" {
			texts = append(texts, r.Summary)
		}
	}
	if want := []string{"They read files.", "They read nine files."}; !slices.Equal(texts, want) {
		t.Errorf("the texts of the summary are %q, want %q", texts, want)
	}
	// The first process uses it with its next request.
	appendAll(t, s, []*furl.Message{message(t, furl.RoleUser, text("go on"))})
	fit = fitted(t, s)
	if s.WaitingSummary() != nil || !strings.Contains(encoded(t, fit.View), "They read nine files.") || fit.Plan.After > 4000 {
		t.Errorf("the first process does not show the summary: %s", encoded(t, fit.View))
	}
	if _, err := s.DecideSummary(t.Context(), true); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("a second approval: %v, want ErrNotOnPath", err)
	}
	checked(t, s)
}

// C10: a refused summary changes nothing, its cost is in the ledger, and another one may
// be prepared.
func TestC10RefusedSummary(t *testing.T) {
	s, store, _ := waiting(t, session.Options{AskFirst: new(true)})
	head := s.Head()
	if rec, err := otherProcess(t, store, s).DecideSummary(t.Context(), false); rec != 0 || err != nil {
		t.Fatal(rec, err)
	}
	again := otherProcess(t, store, s)
	if total := again.Meta().Ledger.Total(); again.WaitingSummary() != nil || again.Head() != head || total.SummaryCost != 0.25 || total.SummaryTokens != 3010 {
		t.Errorf("after a refusal the ledger is %+v", total)
	}
	fit := fitted(t, again)
	if again.SummaryStage(fit) == nil {
		t.Error("no other summary is due")
	}
}

// C10: a waiting summary is not used on a path that it does not fit, and waits on.
func TestC10WaitingSummaryOfAnotherBranch(t *testing.T) {
	s, _, _ := waiting(t, session.Options{})
	back, err := s.Rewind(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, []*furl.Message{message(t, furl.RoleUser, text("another way"))})
	if w := s.WaitingSummary(); w == nil || w.State != "off_path" {
		t.Errorf("the waiting summary is %+v", w)
	}
	if _, err := s.DecideSummary(t.Context(), true); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("an approval off the path: %v, want ErrNotOnPath", err)
	}
	if len(s.Reductions()) != 0 {
		t.Error("the summary was recorded")
	}
	if _, err := s.Rewind(t.Context(), back.Branch); err != nil {
		t.Fatal(err)
	}
	// Pinned messages cannot be summarized.
	spans, err := s.Spans("furl:2")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(t.Context(), furl.Pin, spans...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DecideSummary(t.Context(), true); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("an approval over a pin: %v, want ErrConflict", err)
	}
	if err := s.Hold(t.Context(), furl.Release, spans...); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.DecideSummary(t.Context(), true); err != nil || rec == 0 || len(s.Reductions()) != 1 {
		t.Error(rec, err)
	}
}

// C10: a summary that is ready when ask_first is turned on waits too.
func TestC10ReadySummaryThenAskFirst(t *testing.T) {
	s, store, _ := waiting(t, session.Options{AskFirst: new(false)})
	if s.WaitingSummary() != nil {
		t.Fatal("the summary waits")
	}
	if err := s.Set(t.Context(), "ask_first", "on"); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, steps(t, 12, 900)[19:])
	if fit := fitted(t, s); strings.Contains(encoded(t, fit.View), "They read files.") {
		t.Error("the summary is shown")
	}
	if w := otherProcess(t, store, s).WaitingSummary(); w == nil {
		t.Error("no summary waits")
	}
}

// C10: readers of the log learn of a summary that waits.
func TestC10WaitingSummaryIsAnEvent(t *testing.T) {
	s, store, _ := waiting(t, session.Options{})
	other := otherProcess(t, store, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []event.Event
	for m, err := range other.Watch(ctx, other.Head()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Record.Seq == 0 {
			told = append(told, m.Events...)
			if _, err := s.DecideSummary(ctx, true); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if c := slices.IndexFunc(m.Events, func(e event.Event) bool { return e.Name() == "context_compacted" }); c >= 0 {
			break
		}
	}
	if len(told) != 1 || told[0].Name() != "warning" {
		t.Errorf("the events are %+v, want one warning", told)
	}
}
