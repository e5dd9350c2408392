package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Prepare makes the compaction that Reduce would make now, whatever the trigger.
// The session may continue meanwhile: a summary can be written in the background,
// or reviewed by a person, and recorded later with Commit. An error means that
// there is nothing to record.
func (c *Compact) Prepare(ctx context.Context, s *furl.State, b furl.Budget) (*furl.Reduction, error) {
	v := s.View(b.Model)
	red, err := c.Reduce(ctx, v, b)
	if err != nil {
		return nil, err
	}
	return settle(s, v, b, red)
}

// Commit updates a compaction that was prepared for an earlier state of the same
// path, so that it can be recorded now, with its current number, sizes and time.
// The error wraps furl.ErrNotOnPath if messages that it replaces are no longer on
// the path. It is a Skip if some of them are now protected or kept, or if the
// compaction no longer makes the view smaller.
func Commit(s *furl.State, b furl.Budget, red *furl.Reduction) (*furl.Reduction, error) {
	v := s.View(b.Model)
	effect, err := s.Effect(red)
	if err != nil {
		return nil, err
	}
	m, err := summaryMark(red)
	if err != nil {
		return nil, err
	}
	for i := range v.Units {
		if u := &v.Units[i]; (u.Protected || u.Hold >= furl.Keep) && within(v, u, red.Items[0].Spans) {
			return nil, Skip("what it would hide is protected by now")
		}
	}
	late := *red
	sum := *red.Summary
	sum.Number, sum.Messages = nextNumber(s), len(effect.Messages)
	late.Summary = &sum
	late.Items = []furl.Item{{Spans: red.Items[0].Spans, Show: withRecord(m, sum.Text, &sum, b)}}
	return settle(s, v, b, &late)
}

// Edit makes a reduction that shows another text in place of a summary or an
// extract, such as one that a person has corrected. The number stays the same.
// The previous text stays in the log and is shown again if the edit is undone.
// The error wraps furl.ErrNotOnPath if the reduction is not on the path or its
// marker is not shown. It is ErrNoSummary if the text is empty.
func Edit(s *furl.State, b furl.Budget, seq furl.Seq, text string) (*furl.Reduction, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, ErrNoSummary
	}
	v := s.View(b.Model)
	at := slices.IndexFunc(v.Units, func(u furl.Unit) bool { return u.Kind == furl.UnitMark && u.By == seq })
	if at < 0 {
		return nil, fmt.Errorf("edit the summary %d: its mark is %w", seq, furl.ErrNotOnPath)
	}
	red, _ := s.Reduction(seq)
	m, err := summaryMark(red.Reduction)
	if err != nil {
		return nil, fmt.Errorf("edit %d: %w", seq, err)
	}
	sum := *red.Summary
	sum.Text, sum.Request, sum.Usage = text, "", furl.Usage{}
	if sum.Model == "" {
		sum.Model = editedModel // no longer an extract of their own words
	}
	was := b
	was.Size = red.Before
	was.Now = red.At
	edit := &furl.Reduction{
		Stage:   red.Stage,
		Reason:  fmt.Sprintf("summary %d, edited", sum.Number),
		Summary: &sum,
		Items:   []furl.Item{{Spans: v.Spans(v.Units[at]), Show: withRecord(m, red.Summary.Text, &sum, was)}},
	}
	state, err := s.With(edit)
	if err != nil {
		return nil, err
	}
	after := b.After(v, state.View(b.Model))
	edit.Before, edit.After, edit.Scale = b.Size, after.Size, b.Scale
	if red.After > 0 {
		// It frees what the first text has freed, more or less by the difference (C4).
		edit.Before += max(0, red.Before-red.After)
	}
	return edit, nil
}

// editedModel is furl.Summary.Model for an extract that a person edited.
const editedModel = "edited"

// settle returns the reduction with its current sizes and cost.
func settle(s *furl.State, v *furl.View, b furl.Budget, red *furl.Reduction) (*furl.Reduction, error) {
	r := &runner{plan: &furl.Plan{}, state: s, view: v, b: b, minGain: 1}
	if err := r.take(red, &furl.PlanStep{}); err != nil {
		return nil, err
	}
	return red, nil
}

// summaryMark returns the marker of a compaction or an extract.
func summaryMark(red *furl.Reduction) (furl.Mark, error) {
	if red.Summary != nil && len(red.Items) == 1 {
		if m, ok := red.Items[0].Show.(furl.Mark); ok && len(m.Messages) > 0 && len(m.Messages[0].Blocks) > 0 {
			return m, nil
		}
	}
	return furl.Mark{}, errors.New("it is no summary")
}

// withRecord returns a marker with the summary's text in its first block, in place
// of the text was. Words that a policy put around it (Compact.Frame) stay.
func withRecord(m furl.Mark, was string, sum *furl.Summary, b furl.Budget) furl.Mark {
	msg := *m.Messages[0]
	msg.Blocks = slices.Clone(msg.Blocks)
	text := recordText(sum, b)
	shown := msg.Blocks[0].Text
	if framed := shown != was && was != "" && !strings.HasPrefix(shown, recordBegin); framed && strings.Contains(shown, was) {
		text = strings.Replace(shown, was, shownSummary(sum.Text, b), 1)
	}
	msg.Blocks[0] = furl.Block{Kind: furl.KindText, Text: text}
	if b.Counter != nil {
		msg.Measure(b.Counter)
	}
	msg.Seal()
	return furl.Mark{Messages: append([]*furl.Message{&msg}, m.Messages[1:]...), At: m.At}
}
