package open

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// With the setting ask_first, a summary is not used when it is ready. It waits in the
// session's metadata, also across restarts, until a person approves or refuses it.
// Meanwhile the policy hides nothing in its place while the prompt fits the window
// (policy.Settings.AskFirst).

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

// EncodeWaiting encodes a summary that waits, for storage.Meta.Waiting.
func EncodeWaiting(r *PendingSummary, now time.Time) (json.RawMessage, error) {
	head, body, err := record.Encode(furl.Record{Seq: r.At + 1, Parent: r.At, At: now, By: furl.Furl, Body: r.Red})
	if err != nil {
		return nil, err
	}
	return json.Marshal(waitingSummary{r.Model, head, body, r.Edited})
}

// DecodeWaiting decodes a waiting summary, nil if there is none.
func DecodeWaiting(data json.RawMessage) (*PendingSummary, error) {
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
	return &PendingSummary{Red: red, At: rec.Parent, Model: w.Model, Edited: w.Edited, Since: rec.At}, nil
}

// asksFirst reports whether summaries wait for approval.
func (c *Change) asksFirst() bool {
	if on, err := ParseSwitch(c.Meta().Settings[SettingAskFirst]); err == nil && on != nil {
		return *on
	}
	all := c.all.live().AskFirst
	return all != nil && *all
}

// setWaiting makes a summary wait for approval, with the current change. It replaces one
// that waits already.
func (c *Change) setWaiting(r *PendingSummary) error {
	data, err := EncodeWaiting(r, c.all.o.Now())
	if err != nil {
		return err
	}
	m := c.Meta().Clone()
	if c.s.waiting != nil {
		c.addUnused(&m, c.s.waiting)
	}
	m.Waiting = data
	c.SetMeta(m)
	return nil
}

// errRedacted is the error for a summary that may have what was redacted after it was
// requested.
var errRedacted = errors.New("the session was redacted meanwhile")

// addUnused adds the cost of a summary that is not used to the ledger of new metadata.
func (c *Change) addUnused(m *storage.Meta, r *PendingSummary) {
	if m.Ledger == nil {
		m.Ledger = &storage.Ledger{}
	}
	m.Ledger.Add(c.all.o.Now().Format(time.DateOnly), LedgerModel(r.Model), unusedCost(r.Red))
}

// holdReady makes the ready summary wait for approval, because the setting was changed
// after it was requested.
func (c *Change) holdReady() error {
	if err := c.setWaiting(c.s.ready); err != nil {
		return err
	}
	c.summaryRecorded = true
	return nil
}

// storeWaiting stores a summary that waits for approval.
func (s *Session) storeWaiting(ctx context.Context, r *PendingSummary) error {
	// The summary has been paid for, so it is stored even if ctx ends now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := s.Update(ctx, OnDisk, func(c *Change) error {
		if r.redactions != len(c.Meta().Redactions) {
			return errRedacted
		}
		return c.setWaiting(r)
	})
	if err != nil {
		return fmt.Errorf("store a summary that waits for approval: %w", err)
	}
	s.all.log.Info("summary waits for approval", "session", s.key.Session)
	return nil
}

// waitingApplies reports whether a summary waits for approval that could be used on the
// current path.
func (c *Change) waitingApplies() bool {
	if c.s.waiting == nil {
		return false
	}
	if _, err := c.log.State().Effect(c.s.waiting.Red); err != nil {
		return false
	}
	_, _, err := c.PlanApproved(c.s.waiting)
	return err == nil
}

// skippedWaiting adds a step to a plan if it would have used the waiting summary.
func (c *Change) skippedWaiting(plan *furl.Plan, b *furl.Budget) *furl.Plan {
	if !c.waitingApplies() || len(plan.Reductions) == 0 && plan.Reason == "" && !cold(b) {
		return plan
	}
	out := *plan
	out.Steps = append([]furl.PlanStep{{
		Stage: "compact", Skipped: "a summary waits for approval", Before: plan.Before, After: plan.Before,
	}}, plan.Steps...)
	return &out
}

// Text returns the text that would be recorded.
func (r *PendingSummary) Text() string {
	if r.Edited != "" {
		return r.Edited
	}
	return r.Red.Summary.Text
}

// DecideSummary is session.Session.DecideSummary.
func (s *Session) DecideSummary(ctx context.Context, approve bool) (rec furl.Seq, err error) {
	err = s.Update(ctx, OnDisk, func(c *Change) error {
		rec = 0
		w := s.waiting
		if w == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.key.Session, furl.ErrNotOnPath)
		}
		m := c.Meta().Clone()
		m.Waiting = nil
		if approve {
			if rec, err = c.RecordApproved(w); err != nil {
				return err
			}
		} else {
			c.addUnused(&m, w)
		}
		c.SetMeta(m)
		return nil
	})
	return rec, err
}

// RecordApproved records a summary that a person has approved.
func (c *Change) RecordApproved(w *PendingSummary) (furl.Seq, error) {
	if _, err := c.log.State().Effect(w.Red); err != nil {
		return 0, fmt.Errorf("the waiting summary is for another branch of the session: %w", err)
	}
	lifts, red, err := c.PlanApproved(w)
	if err != nil {
		return 0, &conflict{fmt.Errorf("the summary that waits cannot be used: %w", err)}
	}
	for _, lift := range lifts {
		if _, err := c.Append(furl.Furl, lift); err != nil {
			return 0, err
		}
	}
	rec, err := c.Append(furl.Furl, red)
	if err != nil || w.Edited == "" {
		return rec.Seq, err
	}
	b, _, _ := c.BudgetFor(Prompt{Model: w.Model})
	edit, err := policy.Edit(c.log.State(), b, rec.Seq, w.Edited)
	if err != nil {
		return 0, err
	}
	rec, err = c.Append(furl.Person, edit)
	return rec.Seq, err
}

// PlanApproved returns the records of an approved summary. If other reductions have
// replaced its messages by a marker, they are undone, unless the next plan would have
// to repeat them: they may cover newer messages too. Then the summary is shown in front
// of their markers. The prompt must become smaller than it is now.
func (c *Change) PlanApproved(w *PendingSummary) (lifts []*furl.Restoration, red *furl.Reduction, err error) {
	in := Prompt{Model: w.Model}
	b, _, _ := c.BudgetFor(in)
	if over := c.OvertakenBy(w); len(over) > 0 {
		lifts, red, err = c.planLate(b, w, over)
		_, acts := c.summaryStage(&policy.Fit{Model: in.Model, Budget: b})
		if err == nil && red.After < b.Size && (b.Window == 0 || float64(red.After) < dueSize(&b, acts)) {
			return lifts, red, nil
		}
	}
	if red, err = policy.Commit(c.log.State(), b, w.Red); err != nil {
		return nil, nil, err
	}
	return nil, red, nil
}

// conflict is an error that wraps furl.ErrConflict without its text.
type conflict struct{ error }

func (*conflict) Is(target error) bool { return target == furl.ErrConflict }
func (e *conflict) Unwrap() error      { return e.error }

// EditWaiting replaces the text of the summary that waits.
func (s *Session) EditWaiting(ctx context.Context, text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return policy.ErrNoSummary
	}
	return s.Update(ctx, OnDisk, func(c *Change) error {
		if s.waiting == nil {
			return fmt.Errorf("session %s has no summary that waits for approval: %w", s.key.Session, furl.ErrNotOnPath)
		}
		w := *s.waiting
		if w.Edited = text; text == w.Red.Summary.Text {
			w.Edited = ""
		}
		data, err := EncodeWaiting(&w, w.Since)
		if err != nil {
			return err
		}
		m := c.Meta().Clone()
		m.Waiting = data
		c.SetMeta(m)
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
	if s.waiting, err = DecodeWaiting(m.Waiting); err != nil {
		s.all.log.Warn("waiting summary could not be read", "session", s.key.Session, "error", err)
	}
}

// Waiting returns the summary that waits for approval, nil if there is none.
func (c *Change) Waiting() *PendingSummary { return c.s.waiting }
