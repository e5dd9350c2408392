package operation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// reductionOf returns a reduction of the current branch.
func reductionOf(c *Call, seq furl.Seq) (*session.Recorded, error) {
	list := c.Session.Reductions()
	for i := range list {
		if list[i].Seq == seq {
			return &list[i], nil
		}
	}
	return nil, noReduction(seq)
}

func noReduction(seq furl.Seq) error {
	return &UnknownBlock{fmt.Sprintf("there is no reduction %d on the current branch", seq)}
}

// hiddenBy says what a reduction hid.
func hiddenBy(r *session.Recorded) string {
	if text := hidden(r.Archived, r.Blocks); text != "" {
		return text
	}
	return "what it hid"
}

// RestoreInput is the input of restore.
type RestoreInput struct {
	Handles   []string `json:"handles,omitempty" arg:"REDUCTION|HANDLE..." help:"numbers of reductions to undo, or handles, record numbers or ranges to show again"`
	Reduction furl.Seq `json:"reduction_id,omitempty" help:"a reduction to undo, in place of handles"`
	preview
}

var restore = define(Operation{
	Name: "restore", Short: "Undo a reduction, or expand messages or results", Audit: Restore, Optional: true,
	Long: `With the numbers of reductions, undoes them. With handles, record numbers of messages or
ranges of them, expands these: the model sees the originals again. If a summary or a
truncation covers them, it sees the whole step. Policies hide expanded messages last;
after unpin, they hide them as before.`,
	Example: []string{"latest 57", "latest furl:12 furl:14.1 --dry-run", "latest 40-120"},
}, func(c *Call, in *RestoreInput) (*Result, error) {
	names := in.Handles
	if in.Reduction != 0 {
		if len(names) > 0 {
			return nil, invalid("set either reduction_id or handles")
		}
		names = []string{fmt.Sprint(in.Reduction)}
	}
	if len(names) == 0 {
		return nil, invalid("missing handles: expected numbers of reductions, or handles, record numbers of messages, or ranges such as 40-120")
	}
	undo, err := reductionsOf(c, names)
	if err != nil {
		return nil, err
	}
	if undo == nil && in.Reduction == 0 {
		return expand(c, &Blocks{names})
	}
	if undo == nil {
		return nil, noReduction(in.Reduction)
	}
	return undoAll(c, undo)
})

// reductionsOf returns the reductions that names are the numbers of, newest first, and nil
// if they are handles.
func reductionsOf(c *Call, names []string) (list []*session.Recorded, err error) {
	others := 0
	for _, name := range names {
		n, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 63)
		isReduction := false
		if err == nil {
			for _, r := range c.Session.Records(furl.Seq(max(n, 1)) - 1) {
				_, isReduction = r.Body.(*furl.Reduction)
				break
			}
		}
		if !isReduction {
			others++
			continue
		}
		r, err := reductionOf(c, furl.Seq(n))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	if len(list) > 0 && others > 0 {
		return nil, invalid("restore takes numbers of reductions or handles, not both")
	}
	slices.SortFunc(list, func(a, b *session.Recorded) int { return int(b.Seq) - int(a.Seq) })
	return slices.CompactFunc(list, func(a, b *session.Recorded) bool { return a.Seq == b.Seq }), nil
}

func expand(c *Call, in *Blocks) (*Result, error) {
	spans, err := in.spans(c)
	if err != nil {
		return nil, err
	}
	what, seen := in.what(c), Look(c.Session, spans)
	r := &Result{Title: "Expand " + what, Did: "Expanded " + what}
	if !seen.Hidden {
		r.Nothing, r.Value = "The model sees all of it already.", session.Restored{}
		return r, nil
	}
	done, err := c.Session.Restore(c, session.RestoreOptions{Spans: spans, DryRun: c.Preview})
	if err != nil {
		return nil, err
	}
	r.Value, r.Price = done, &done.Price
	r.Effects = []string{fmt.Sprintf("The model sees the original again: %s.", Tokens(done.Tokens))}
	if seen.Marked {
		r.Effects = append(r.Effects, "A marker replaces its whole step, so the whole step is shown: a result cannot be shown without its call.")
	}
	r.Notes = []string{"Policies hide it again only if the context does not fit otherwise."}
	r.Undo = &Undo{"hide", &HideInput{Blocks: *in, Steps: seen.Marked || !seen.Inside}}
	return r, nil
}

// undoAll undoes reductions, newest first.
func undoAll(c *Call, list []*session.Recorded) (*Result, error) {
	seqs := make([]furl.Seq, len(list))
	for i, r := range list {
		seqs[len(list)-1-i] = r.Seq
	}
	what, newest := joined("reduction", seqs), list[0]
	r := &Result{Title: "Undo " + what, Did: "Undid " + what}
	list = slices.DeleteFunc(list, func(r *session.Recorded) bool { return r.Lifted })
	if len(list) == 0 {
		r.Nothing, r.Value = Sentence(what+" was undone before"), session.Restored{}
		if newest.Lifted && len(seqs) == 1 {
			r.Undo = &Undo{"hide", &HideInput{Again: newest.Seq}}
		}
		return r, nil
	}
	var sum session.Restored
	covered := make(map[furl.Seq]bool)
	for i, of := range list {
		done, err := c.Session.Restore(c, session.RestoreOptions{Reduction: of.Seq, DryRun: c.Preview})
		if err != nil {
			return nil, err
		}
		if i == 0 {
			sum.Price, sum.Before = done.Price, done.Before
		}
		sum.Record, sum.After = done.Record, done.After
		sum.Tokens += done.Tokens
		sum.Price.After, sum.Price.PerRequest = done.Price.After, sum.Price.PerRequest+done.Price.PerRequest*float64(min(i, 1))
		sum.Price.Rewrite, sum.Price.Once = max(sum.Price.Rewrite, done.Price.Rewrite), max(sum.Price.Once, done.Price.Once)
		for _, seq := range done.Covered {
			covered[seq] = true
		}
	}
	for _, of := range list {
		delete(covered, of.Seq)
	}
	for seq := range covered {
		sum.Covered = append(sum.Covered, seq)
	}
	slices.Sort(sum.Covered)
	r.Value = sum
	if len(list) == 1 || !c.Preview { // each preview is one of a single reduction
		r.Price = &sum.Price
	}
	r.Effects = []string{fmt.Sprintf("The model sees %s again: %s.", hiddenBy(list[0]), Tokens(sum.Tokens))}
	switch {
	case sum.Tokens == 0:
		r.Effects = []string{"The model sees what it saw before."}
	case len(list) > 1:
		r.Effects = []string{fmt.Sprintf("The model sees what they hid again: %s.", Tokens(sum.Tokens))}
	}
	if len(sum.Covered) > 0 {
		r.Notes = append(r.Notes, "Parts stay hidden by "+joined("reduction", sum.Covered)+".")
	}
	r.Notes = append(r.Notes, "Policies prefer to keep what is shown again.")
	if len(list) == 1 {
		r.Undo = &Undo{"hide", &HideInput{Again: list[0].Seq}}
	}
	return r, nil
}
