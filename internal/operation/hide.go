package operation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// HideInput is the input of hide.
type HideInput struct {
	Blocks
	Steps bool `json:"steps,omitempty" flag:"whole-steps" help:"hide the whole steps, and messages of the user, behind markers"`
	// Again is a reduction that was undone. If set, there are no Handles.
	Again furl.Seq `json:"reduction_id,omitempty" flag:"reduction" help:"hide again what the reduction with this 'number' has hidden; takes no handles"`
	preview
}

var hide = define(Operation{
	Name: "hide", Short: "Hide messages or results from the model", Audit: Change, Optional: true,
	Long: `Hides results and long inputs of calls: the model sees a placeholder in their place, and
can ask for the original. With whole steps, markers replace whole steps: the message, its
calls and their results. What is pinned, the newest step and the newest message of the
user are not hidden. Originals stay in the session.`,
	Example: []string{"latest furl:14.0", "01jd5 40-120 --dry-run", "01jd5 40-120 --whole-steps", "latest --reduction 57"},
}, func(c *Call, in *HideInput) (*Result, error) {
	stage, r := &policy.Hide{Steps: in.Steps, Again: in.Again}, &Result{}
	if in.Again != 0 {
		if len(in.Handles) > 0 {
			return nil, invalid("hide takes handles, or the number of a reduction to repeat, not both")
		}
		rec, err := reductionOf(c, in.Again)
		if err != nil {
			return nil, err
		}
		r.Title, r.Did = fmt.Sprintf("Hide again what reduction %d hid", rec.Seq), fmt.Sprintf("Hid again what reduction %d hid", rec.Seq)
		r.Effects = []string{fmt.Sprintf("The model sees the same placeholders or summary in place of %s.", hiddenBy(rec))}
		r.Notes = []string{"This is a new reduction."}
	} else {
		spans, err := in.spans(c)
		if err == nil && c.ByModel {
			err = allowed(c, spans)
		}
		if err != nil {
			return nil, err
		}
		stage.Spans = spans
		what := in.what(c)
		r.Title, r.Did = "Hide "+what, "Hid "+what
		r.Effects = []string{"The model sees a placeholder in its place. The call stays, and the model can ask for the original."}
		if in.Steps {
			r.Title, r.Did = "Hide the step of "+what, "Hid the step of "+what
			r.Effects = []string{"A marker replaces the whole step: the message, its calls and their results."}
		}
		r.Notes = []string{"The original stays in the session."}
		if in.pronoun() == "them" {
			r.Title, r.Did = strings.Replace(r.Title, "the step of", "the steps of", 1), strings.Replace(r.Did, "the step of", "the steps of", 1)
			r.Notes = []string{"The originals stay in the session."}
		}
	}
	if _, err := reduceBy(c, r, "", session.ReduceOptions{Stage: stage, DryRun: c.Preview}); err != nil || r.Nothing != "" || in.Again != 0 || in.pronoun() == "it" {
		return r, err
	}
	n := r.Value.(*session.Reduction).Planned // of several, some may be visible still
	for i := range n {
		r.Effects = []string{fmt.Sprintf("The model sees placeholders in place of %s. The calls stay, and the model can ask for the originals.", hidden(len(n[i].Messages), n[i].Blocks))}
		if in.Steps {
			r.Effects = []string{fmt.Sprintf("Markers replace %s.", hidden(len(n[i].Messages), n[i].Blocks))}
		}
	}
	return r, nil
})

// newestSteps is how many of the newest steps a model may not hide.
const newestSteps = 3

// allowed returns a Refusal if the model may not hide the blocks: what the user or the
// client said, and the newest steps.
func allowed(c *Call, spans []furl.Span) (err error) {
	c.Session.Internal().Read(func(ch *open.Change) {
		each(ch, spans, func(_ furl.Pos, m *furl.Message, b *furl.Block) {
			if m.Role != furl.RoleAssistant && !b.IsResult() {
				err = Refusal("The model cannot hide messages of the user, or instructions.")
			}
		})
		v := ch.Log().State().View(ch.Model(ch.Meta().Model))
		for i := range v.Units {
			u := &v.Units[i]
			if u.Step == 0 || v.Steps-u.Step >= newestSteps || err != nil {
				continue
			}
			for j := range u.Blocks {
				pos := u.Blocks[j].Pos
				if slices.ContainsFunc(spans, func(sp furl.Span) bool { return !less(pos, sp.First) && !less(sp.Last, pos) }) {
					err = Refusal(fmt.Sprintf("The model cannot hide the newest %d steps.", newestSteps))
				}
			}
		}
	})
	return err
}

func less(a, b furl.Pos) bool { return a.Msg < b.Msg || a.Msg == b.Msg && a.Block < b.Block }
