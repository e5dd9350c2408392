package operation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// ReduceInput is the input of reduce.
type ReduceInput struct {
	Policy string `json:"policy" flag:"policy" help:"'policy' to apply (default the session's)"`
	Model  string `json:"model" flag:"model" help:"'model' whose window and prices count (default the session's)"`
	preview
}

var reduce = define(Operation{
	Name: "reduce", Short: "Apply a policy now", Audit: Change,
	Long: `Applies a policy now, even if its trigger is not reached. Without --policy, that of the
session. The session's own policy stays the same.`,
	Example: []string{"latest --dry-run", "latest --policy rolling-mask-5"},
	Missing: map[Surface]string{Model: "policies act by themselves before each request; a model hides what it names", Chat: "/context shows the window, and /policy chooses the policy that acts before the next request"},
}, func(c *Call, in *ReduceInput) (*Result, error) {
	name, subject := visible.Line(in.Policy), "The policy "+visible.Line(in.Policy)
	if name == "" {
		name, subject = "the policy of the session", "The policy of the session"
	}
	r := &Result{Title: "Apply " + name, Did: "Applied " + name}
	return reduceBy(c, r, subject+" hides nothing now: ", session.ReduceOptions{Policy: in.Policy, Model: in.Model, DryRun: c.Preview})
})

// reduceBy reduces, and completes a result. nothing is what is said before the reason if
// nothing is hidden.
func reduceBy(c *Call, r *Result, nothing string, o session.ReduceOptions) (*Result, error) {
	done, err := c.Session.Reduce(c, o)
	if err != nil {
		return nil, err
	}
	r.Value = done
	if len(done.Planned) == 0 {
		r.Nothing, r.Effects, r.Notes = Sentence(nothing+whyNothing(done)), nil, nil
		return r, nil
	}
	price := done.Price
	for i := range done.Planned {
		if strings.Contains(done.Planned[i].Reason, "per request") {
			price.PerRequest = 0 // the reason has the plan's figure; a saving is said once
		}
	}
	r.Price = &price
	if o.Stage == nil {
		if !c.Preview {
			r.Effects = []string{fmt.Sprintf("The context: %s → %s tokens.", numbers.Thousands(done.Before), numbers.Thousands(done.After))}
		}
		for i := range done.Planned {
			r.Notes = append(r.Notes, Planned(&done.Planned[i], c.Preview))
		}
		for _, st := range done.Steps {
			if st.Skipped != "" {
				r.Notes = append(r.Notes, Sentence(st.Stage+" skipped: "+st.Skipped))
			}
		}
		if done.Reason != "" {
			r.Notes = append(r.Notes, Sentence(done.Reason))
		}
		r.Notes = append(r.Notes, "The policy of the session stays the same; this is done once.")
	}
	for _, w := range done.Warnings {
		r.Notes = append(r.Notes, Sentence("Warning: "+w.Text))
	}
	if !c.Preview {
		undo := &RestoreInput{}
		for _, p := range done.Planned {
			undo.Handles = append(undo.Handles, fmt.Sprint(p.Record))
		}
		r.Undo = &Undo{"restore", undo}
	}
	return r, nil
}

// whyNothing says why nothing was hidden.
func whyNothing(done *session.Reduction) string {
	if done.Reason != "" {
		return done.Reason
	}
	var skipped []string
	for _, st := range done.Steps {
		if st.Skipped != "" && !slices.Contains(skipped, st.Skipped) {
			skipped = append(skipped, st.Skipped)
		}
	}
	if len(skipped) == 0 {
		return fmt.Sprintf("there is nothing to hide; the context has about %s", Tokens(done.Before))
	}
	return strings.Join(skipped, "; ")
}

// Planned says what a stage of a policy hides, or would hide.
func Planned(p *policy.Planned, preview bool) string {
	verb := "hid"
	if preview {
		verb = "would hide"
	}
	what, reason := hidden(len(p.Messages), p.Blocks), visible.Line(p.Reason)
	if counted, ok := strings.CutPrefix(reason, "hid "); ok { // the reason has its own counts
		what, reason, _ = strings.Cut(counted, ": ")
	}
	text := fmt.Sprintf("%s %s %s: %s → %s tokens.", visible.Line(p.Stage), verb, what, numbers.Thousands(p.Before), numbers.Thousands(p.After))
	if reason != "" {
		text += " " + Sentence(reason)
	}
	return text
}

// hidden counts what a reduction hides.
func hidden(messages, blocks int) string {
	var what []string
	if messages > 0 {
		what = append(what, numbers.Count(messages, "message"))
	}
	if blocks > 0 {
		what = append(what, numbers.Count(blocks, "block"))
	}
	return strings.Join(what, " and ")
}

// joined returns a text such as "reduction 3" or "reductions 3 and 7".
func joined(what string, seqs []furl.Seq) string {
	words := make([]string, len(seqs))
	for i, s := range seqs {
		words[i] = fmt.Sprint(s)
	}
	if len(words) == 1 {
		return what + " " + words[0]
	}
	return what + "s " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
