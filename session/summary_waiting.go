package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// With the setting ask_first, a summary is not used when it is ready. It waits in the
// session's metadata, also across restarts, until a person approves or refuses it.
// Meanwhile the policy hides nothing in its place while the prompt fits the window
// (policy.Settings.AskFirst).

// States of Session.WaitingSummary.
const (
	waitingState = "waiting"
	offPathState = "off_path" // its messages are not on the current path
	unusedState  = "unusable" // it cannot be used, or would not make the prompt smaller
)

// codeWaiting is the code of the warning event about a summary that waits.
const codeWaiting = "summary_waiting"

// waitingSummary is storage.Meta.Waiting.
type waitingSummary struct {
	// Model is the model of the request that the summary was prepared after, as
	// requests name it.
	Model string `json:"model"`
	// Head and Body are the encoded reduction. Its parent is the record of that
	// request's prompt.
	Head []byte `json:"head"`
	Body []byte `json:"body,omitempty"`
	// Edited is the text that a person wants instead, "" for the model's.
	Edited string `json:"edited,omitempty"`
}

func encodeWaiting(r *readySummary, now time.Time) (json.RawMessage, error) {
	head, body, err := record.Encode(furl.Record{Seq: r.at + 1, Parent: r.at, At: now, By: furl.Furl, Body: r.red})
	if err != nil {
		return nil, err
	}
	return json.Marshal(waitingSummary{r.model, head, body, r.edited})
}

// decodeWaiting decodes a waiting summary, nil if there is none.
func decodeWaiting(data json.RawMessage) (*readySummary, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var w waitingSummary
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	rec, err := record.Decode(w.Head, w.Body)
	if err != nil {
		return nil, err
	}
	red, ok := rec.Body.(*furl.Reduction)
	if !ok || red.Summary == nil {
		return nil, errors.New("it is not a summary")
	}
	return &readySummary{red: red, at: rec.Parent, model: w.Model, edited: w.Edited, since: rec.At}, nil
}

// asksFirst reports whether summaries wait for approval.
func (s *Session) asksFirst() bool {
	value, _ := s.setting(settingAskFirst)
	return value == "on"
}

// setWaiting makes a summary wait for approval, with the current change. It replaces one
// that waits already.
func (s *Session) setWaiting(r *readySummary) error {
	data, err := encodeWaiting(r, s.all.o.Now())
	if err != nil {
		return err
	}
	m := (&tx{s}).Meta().Clone()
	if s.waiting != nil {
		s.addUnused(&m, s.waiting)
	}
	m.Waiting = data
	s.newMeta = &m
	return nil
}

// errRedacted is the error for a summary that may have what was redacted after it was
// requested.
var errRedacted = errors.New("the session was redacted meanwhile")

// addUnused adds the cost of a summary that is not used to the ledger of new metadata.
func (s *Session) addUnused(m *storage.Meta, r *readySummary) {
	if m.Ledger == nil {
		m.Ledger = &storage.Ledger{}
	}
	m.Ledger.Add(s.all.o.Now().Format(time.DateOnly), ledgerModel(r.model), unusedCost(r.red))
}

// holdReady makes the ready summary wait for approval, because the setting was changed
// after it was requested.
func (s *Session) holdReady() error {
	if err := s.setWaiting(s.ready); err != nil {
		return err
	}
	s.summaryRecorded = true
	return nil
}

// storeWaiting stores a summary that waits for approval.
func (s *Session) storeWaiting(ctx context.Context, r *readySummary) error {
	// The summary has been paid for, so it is stored even if ctx ends now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := s.update(ctx, onDisk, func() error {
		if r.redactions != len(s.meta.Redactions) {
			return errRedacted
		}
		return s.setWaiting(r)
	})
	if err != nil {
		return fmt.Errorf("store a summary that waits for approval: %w", err)
	}
	s.all.log.Info("summary waits for approval", "session", s.key.Session)
	return nil
}

// waitingApplies reports whether a summary waits for approval that could be used on the
// current path.
func (s *Session) waitingApplies() bool {
	if s.waiting == nil {
		return false
	}
	if _, err := s.log.State().Effect(s.waiting.red); err != nil {
		return false
	}
	_, _, err := s.planApproved(s.waiting)
	return err == nil
}

// skippedWaiting adds a step to a plan if it would have used the waiting summary.
func (s *Session) skippedWaiting(plan *furl.Plan, b *furl.Budget) *furl.Plan {
	if !s.waitingApplies() || len(plan.Reductions) == 0 && plan.Reason == "" && !cold(b) {
		return plan
	}
	out := *plan
	out.Steps = append([]furl.PlanStep{{
		Stage: "compact", Skipped: "a summary waits for approval", Before: plan.Before, After: plan.Before,
	}}, plan.Steps...)
	return &out
}

// WaitingSummary returns the summary that waits for a person's approval, nil if there is
// none. Its State is waiting, off_path if its messages are not on the current path, or
// unusable if it cannot be used, for example because its messages were pinned or because
// the prompt would not become smaller. If it is waiting, the sizes and the number of
// messages are those that DecideSummary would record now. CoveredBy are the reductions
// that replace its messages by a marker meanwhile.
func (s *Session) WaitingSummary() *Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting
	if w == nil {
		return nil
	}
	out := &Recorded{
		Reduced: policy.Reduced{
			Stage: w.red.Stage, Time: w.since, Before: w.red.Before, After: w.red.After, Reason: w.red.Reason,
			Summary: w.text(), Model: w.red.Summary.Model, Archived: w.red.Summary.Messages,
		},
		State: offPathState, Cost: w.red.Cost, By: furl.Furl,
	}
	if w.edited != "" {
		out.Reason += "; edited"
	}
	if _, err := s.log.State().Effect(w.red); err != nil {
		return out
	}
	out.State, out.CoveredBy = unusedState, s.overtakenBy(w)
	if lifts, red, err := s.planApproved(w); err == nil {
		out.State, out.Before, out.After, out.Archived = waitingState, red.Before, red.After, red.Summary.Messages
		if len(lifts) > 0 { // red.Before is the size without what would be undone
			b, _, _ := s.budgetFor(transact.Prompt{Model: w.model})
			out.Before = b.Size
		}
	}
	return out
}

// text returns the text that would be recorded.
func (r *readySummary) text() string {
	if r.edited != "" {
		return r.edited
	}
	return r.red.Summary.Text
}

// DecideSummary approves or refuses the summary that waits for approval. An approved
// summary is recorded at once, and DecideSummary returns its record. Reductions that have
// replaced its messages by a marker meanwhile are undone if the prompt stays small
// enough. If an edited summary is approved, the model's text is recorded before it.
//
// If no summary waits, or it is for another branch, the error wraps furl.ErrNotOnPath. If
// it cannot be used, for example because its messages were pinned or the prompt would not
// become smaller, the error wraps furl.ErrConflict. The summary waits on after an error.
func (s *Session) DecideSummary(ctx context.Context, approve bool) (rec furl.Seq, err error) {
	err = s.update(ctx, onDisk, func() error {
		rec = 0
		w := s.waiting
		if w == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.key.Session, furl.ErrNotOnPath)
		}
		m := s.meta.Clone()
		m.Waiting = nil
		if approve {
			if rec, err = s.recordApproved(w); err != nil {
				return err
			}
		} else {
			s.addUnused(&m, w)
		}
		s.newMeta = &m
		return nil
	})
	return rec, err
}

// recordApproved records a summary that a person has approved.
func (s *Session) recordApproved(w *readySummary) (furl.Seq, error) {
	if _, err := s.log.State().Effect(w.red); err != nil {
		return 0, fmt.Errorf("the waiting summary is for another branch of the session: %w", err)
	}
	lifts, red, err := s.planApproved(w)
	if err != nil {
		return 0, &conflict{fmt.Errorf("the summary that waits cannot be used: %w", err)}
	}
	for _, lift := range lifts {
		if _, err := s.appendRecord(furl.Furl, lift); err != nil {
			return 0, err
		}
	}
	rec, err := s.appendRecord(furl.Furl, red)
	if err != nil || w.edited == "" {
		return rec.Seq, err
	}
	b, _, _ := s.budgetFor(transact.Prompt{Model: w.model})
	edit, err := policy.Edit(s.log.State(), b, rec.Seq, w.edited)
	if err != nil {
		return 0, err
	}
	rec, err = s.appendRecord(furl.Person, edit)
	return rec.Seq, err
}

// planApproved returns the records of an approved summary. If other reductions have
// replaced its messages by a marker, they are undone, unless the next plan would have
// to repeat them: they may cover newer messages too. Then the summary is shown in front
// of their markers. The prompt must become smaller than it is now.
func (s *Session) planApproved(w *readySummary) (lifts []*furl.Restoration, red *furl.Reduction, err error) {
	in := transact.Prompt{Model: w.model}
	b, _, _ := s.budgetFor(in)
	if over := s.overtakenBy(w); len(over) > 0 {
		lifts, red, err = s.planLate(b, w, over)
		_, acts := s.summaryStage(&Fit{Model: in.Model, Budget: b})
		if err == nil && red.After < b.Size && (b.Window == 0 || float64(red.After) < dueSize(&b, acts)) {
			return lifts, red, nil
		}
	}
	if red, err = policy.Commit(s.log.State(), b, w.red); err != nil {
		return nil, nil, err
	}
	return nil, red, nil
}

// conflict is an error that wraps furl.ErrConflict without its text.
type conflict struct{ error }

func (*conflict) Is(target error) bool { return target == furl.ErrConflict }
func (e *conflict) Unwrap() error      { return e.error }

// editWaiting replaces the text of the summary that waits.
func (s *Session) editWaiting(ctx context.Context, text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return policy.ErrNoSummary
	}
	return s.update(ctx, onDisk, func() error {
		if s.waiting == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.key.Session, furl.ErrNotOnPath)
		}
		w := *s.waiting
		if w.edited = text; text == w.red.Summary.Text {
			w.edited = ""
		}
		data, err := encodeWaiting(&w, w.since)
		if err != nil {
			return err
		}
		m := s.meta.Clone()
		m.Waiting = data
		s.newMeta = &m
		return nil
	})
}

// readWaiting decodes the waiting summary of new metadata.
func (s *Session) readWaiting(m *storage.Meta) {
	if bytes.Equal(m.Waiting, s.meta.Waiting) {
		return
	}
	s.decided = s.waiting != nil && len(m.Waiting) == 0
	var err error
	if s.waiting, err = decodeWaiting(m.Waiting); err != nil {
		s.all.log.Warn("waiting summary could not be read", "session", s.key.Session, "error", err)
	}
}

// waitingEvents returns the event about a summary that has started to wait.
func (s *Session) waitingEvents() []event.Event {
	if s.waiting == nil {
		return nil
	}
	return []event.Event{event.Warning{Code: codeWaiting, Text: fmt.Sprintf(
		"a summary of %d messages waits for approval", s.waiting.red.Summary.Messages)}}
}
