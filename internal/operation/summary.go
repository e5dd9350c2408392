package operation

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// DecideInput is the input of approve and refuse.
type DecideInput struct {
	preview
}

type decided struct {
	Approved  bool     `json:"approved"`
	Reduction furl.Seq `json:"reduction_id"`
}

// noSummaries is why a model has no operations on summaries.
const noSummaries = "people decide about summaries: what a summary says is all that the model knows of what it replaces"

var approve = define(Operation{
	Name: "approve", Command: "summary approve", Path: "summary/approve", Short: "Use the summary that waits", Audit: Change,
	Long: `Uses the summary that waits for approval: the model sees it in place of the messages
that it summarizes. Reductions that have replaced these messages meanwhile are
undone if the prompt stays small enough. If the summary was edited, the model's own
text stays in the session.`,
	Example: []string{"latest"},
	Missing: map[Surface]string{Model: noSummaries},
}, func(c *Call, _ *DecideInput) (*Result, error) {
	price, err := c.Session.PriceOfApproval()
	if err != nil {
		return nil, err
	}
	r := &Result{Title: "Use the summary that waits", Did: "The summary is used", Price: &price, Notes: []string{"The originals stay in the session."}}
	if w := c.Session.WaitingSummary(); w != nil {
		r.Effects = []string{fmt.Sprintf("The model sees it in place of %s.", numbers.Count(w.Archived, "message"))}
	}
	if c.Preview {
		return r, nil
	}
	rec, err := c.Session.DecideSummary(c, true)
	if err != nil {
		return nil, err
	}
	r.Effects = append(r.Effects, fmt.Sprintf("The context has about %s.", Tokens(c.Session.Context("").Size)))
	r.Value, r.Undo = decided{true, rec}, &Undo{"restore", &RestoreInput{Handles: []string{fmt.Sprint(rec)}}}
	return r, nil
})

var refuse = define(Operation{
	Name: "refuse", Command: "summary refuse", Path: "summary/refuse", Short: "Discard the summary that waits", Audit: Change,
	Long: `Discards the summary that waits for approval. Nothing else changes. Its cost is counted
in the savings of the session. Another summary may be requested later.`,
	Example: []string{"latest"},
	Missing: map[Surface]string{Model: noSummaries},
}, func(c *Call, _ *DecideInput) (*Result, error) {
	r := &Result{Title: "Discard the summary that waits", Did: "The summary was discarded"}
	r.Effects = []string{"Nothing else changes. This cannot be undone; another summary may be written later."}
	if c.Preview {
		if c.Session.WaitingSummary() == nil {
			return nil, &UnknownBlock{fmt.Sprintf("session %s has no summary that waits for approval", c.Session.ID())}
		}
		return r, nil
	}
	r.Value = decided{}
	_, err := c.Session.DecideSummary(c, false)
	return r, err
})

// maxSummary is the size of the largest text of a summary, in bytes.
const maxSummary = 1 << 20

// EditInput is the input of edit-summary.
type EditInput struct {
	Reduction *furl.Seq `json:"reduction_id" arg:"[REDUCTION]" help:"number of the summary (default the one that waits, or else the newest in use)"`
	Text      string    `json:"text" help:"the new text"`
	preview
}

type edited struct {
	Changed   bool     `json:"changed"`
	Reduction furl.Seq `json:"reduction_id"`
}

var edit = define(Operation{
	Name: "edit-summary", Path: "summary/edit", Short: "Edit a summary", Audit: Change,
	Long: `Replaces the text of a summary: of the one with the number, or of the one that waits for
approval, or else of the newest one in use. The previous text stays in the session.`,
	Example: []string{"latest 57", "latest --file summary.md"},
	Missing: map[Surface]string{Model: noSummaries},
}, func(c *Call, in *EditInput) (*Result, error) {
	of, err := SummaryOf(c.Session, in.Reduction)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(in.Text, "\uFFFD"), "\r\n", "\n")
	switch {
	case len(text) > maxSummary:
		return nil, invalid(fmt.Sprintf("the text is larger than %s bytes, the limit for a summary", numbers.Thousands(maxSummary)))
	case strings.TrimSpace(text) == "":
		return nil, policy.ErrNoSummary
	}
	what := "the summary that waits"
	if of.Seq != 0 {
		what = fmt.Sprintf("summary %d", of.Number)
	}
	r := &Result{Title: "Edit " + what, Did: "Edited " + what, Value: edited{}}
	if strings.TrimSpace(text) == strings.TrimSpace(of.Summary) {
		r.Nothing = "The text is the same."
		return r, nil
	}
	r.Effects = []string{"The summary is not in use before it is approved."}
	if of.Seq != 0 {
		price, err := c.Session.PriceOfEdit(of.Seq, text)
		if err != nil {
			return nil, err
		}
		r.Price, r.Effects = &price, []string{"The model sees the new text from the next request on. The old one stays in the session."}
	}
	if c.Preview {
		return r, nil
	}
	rec, err := c.Session.EditSummary(c, of.Seq, text)
	if err != nil {
		return nil, err
	}
	r.Value = edited{true, rec.Seq}
	if rec.Seq != 0 {
		r.Undo = &Undo{"restore", &RestoreInput{Handles: []string{fmt.Sprint(rec.Seq)}}}
	}
	return r, nil
})

// Summaries returns the summaries and extracts on the current branch, with all texts that
// they have had.
func Summaries(s *session.Session) (list []session.Recorded) {
	for _, r := range s.Reductions() {
		if r.Number > 0 && r.Summary != "" {
			list = append(list, r)
		}
	}
	return list
}

// SummaryOf returns the summary with the number of a reduction, which must be in use. If the
// number is nil or 0, it returns the one that waits for approval, or else the newest in use.
func SummaryOf(s *session.Session, number *furl.Seq) (*session.Recorded, error) {
	list := Summaries(s)
	if number == nil || *number == 0 {
		if w := s.WaitingSummary(); w != nil {
			return w, nil
		}
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].State == "active" {
				return &list[i], nil
			}
		}
		return nil, &UnknownBlock{fmt.Sprintf("session %s has no summary in use, and none that waits for approval", s.ID())}
	}
	for i := range list {
		switch {
		case list[i].Seq != *number:
		case list[i].State != "active":
			return nil, Refusal(fmt.Sprintf("Summary %d is %s, so the model does not see it.", *number, list[i].State))
		default:
			return &list[i], nil
		}
	}
	return nil, &UnknownBlock{fmt.Sprintf("no summary has the number %d", *number)}
}
