package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// reductionParams reads the request parameters "reduction", newest first.
func (v *visit) reductionParams() (list []furl.Seq, err error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	for _, text := range v.r.Form["reduction"] {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n == 0 {
			return nil, badRequest("invalid reduction %.20q: expected a record number", text)
		}
		list = append(list, furl.Seq(n))
	}
	if len(list) == 0 {
		return nil, badRequest("no reduction is named")
	}
	slices.Sort(list)
	slices.Reverse(list)
	return slices.Compact(list), nil
}

// recorded returns a reduction of the current path.
func (v *visit) recorded(seq furl.Seq) (*session.Recorded, error) {
	list := v.s.Reductions()
	for i := range list {
		if list[i].Seq == seq {
			return &list[i], nil
		}
	}
	return nil, notFound("there is no reduction %d on the current branch", seq)
}

// hidText says what a reduction hid.
func hidText(r *session.Recorded) string {
	var what []string
	if r.Archived > 0 {
		what = append(what, pluralOf(r.Archived, "message"))
	}
	if r.Blocks > 0 {
		what = append(what, pluralOf(r.Blocks, "block"))
	}
	if len(what) == 0 {
		return "what it hid"
	}
	return strings.Join(what, " and ")
}

func askUndo(v *visit) (*panel, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	of := list[0]
	r, err := v.recorded(of)
	if err != nil {
		return nil, err
	}
	out := &panel{Title: fmt.Sprintf("Undo reduction %d", of), Button: "Undo", Fields: make(map[string][]string)}
	for _, seq := range list {
		out.Fields.Add("reduction", seqKey(seq))
	}
	if r.Lifted {
		out.Refuse = fmt.Sprintf("Reduction %d was undone before.", of)
		out.Links = []button{*v.button("again", "Hide it again", "reduction", seqKey(of))}
		return out, nil
	}
	done, err := v.s.Restore(v.r.Context(), session.RestoreOptions{Reduction: of, DryRun: true})
	if err != nil {
		return nil, err
	}
	out.Price = v.price(done.Price)
	if len(list) > 1 {
		out.Title, out.Price = fmt.Sprintf("Undo %d reductions", len(list)), nil
	}
	out.Says = []string{fmt.Sprintf("The model sees %s again, as before this reduction.", hidText(r))}
	out.Notes = append(out.Notes, coveredNote(done.Covered)...)
	out.Notes = append(out.Notes, "Policies prefer to keep what is shown again.")
	return out, nil
}

// coveredNote says which reductions still hide what an undone one hid.
func coveredNote(by []furl.Seq) []string {
	if len(by) == 0 {
		return nil
	}
	words := make([]string, len(by))
	for i, seq := range by {
		words[i] = seqKey(seq)
	}
	noun := "reduction "
	if len(by) > 1 {
		noun = "reductions "
	}
	return []string{"Parts stay hidden by " + noun + strings.Join(words, ", ") + "."}
}

func doUndo(v *visit) (*outcome, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	out := &outcome{NoUndo: "There is no redo. You can hide the same again."}
	var first, last policy.Price
	for i, of := range list {
		r, err := v.recorded(of)
		if err != nil {
			return nil, err
		}
		if r.Lifted {
			return nil, refusal(fmt.Sprintf("Reduction %d was undone before.", of))
		}
		done, err := v.s.Restore(v.r.Context(), session.RestoreOptions{Reduction: of})
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = done.Price
		}
		last = done.Price
		out.Notes = append(out.Notes, coveredNote(done.Covered)...)
		out.Links = append([]button{*v.button("again", "Hide it again", "reduction", seqKey(of))}, out.Links...)
	}
	out.Text = fmt.Sprintf("Reduction %d is undone.", list[0])
	if len(list) > 1 {
		out.Text = fmt.Sprintf("%d reductions are undone.", len(list))
		out.Links = nil
		last.Before = first.Before
		last.Rewrite, last.Once = max(first.Rewrite, last.Rewrite), max(first.Once, last.Once)
		out.NoUndo = "There is no redo. To hide the same again, use the markers of the reductions."
	}
	out.Price = v.price(last)
	return out, nil
}

func askAgain(v *visit) (*panel, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	r, err := v.recorded(list[0])
	if err != nil {
		return nil, err
	}
	out := &panel{Title: fmt.Sprintf("Hide again what reduction %d hid", r.Seq), Button: "Hide again", Fields: values("reduction", seqKey(r.Seq))}
	done, why, err := v.again(r.Seq, true)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		out.Refuse = why
	default:
		out.Price = v.price(done.Price)
		out.Says = []string{fmt.Sprintf("The model sees the same placeholders or summary in place of %s.", hidText(r))}
		out.Notes = []string{"There is no redo, so this is a new reduction."}
	}
	return out, nil
}

func (v *visit) again(of furl.Seq, dry bool) (*session.Reduction, string, error) {
	return v.reduceBy(session.ReduceOptions{Stage: &policy.Hide{Again: of}, DryRun: dry})
}

func doAgain(v *visit) (*outcome, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	done, why, err := v.again(list[0], false)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, refusal(why)
	}
	return v.reduced(fmt.Sprintf("What reduction %d hid is hidden again.", list[0]), done), nil
}

// policyChoice is a policy to choose from.
type policyChoice struct {
	Name, About     string
	Current, Chosen bool
}

// policyWords describe the presets.
var policyWords = map[string]string{
	"none":            "hides nothing",
	"tool-age":        "cuts old tool results, by their age in steps",
	"sliding-window":  "hides the older half of the messages when the window is full",
	"compaction":      "replaces old messages by a summary",
	"rolling":         "hides the oldest messages, down to a share of the window",
	"graduated":       "masks results first, then extracts, then truncates",
	"rolling-mask-10": "masks tool results except the newest 10",
	"rolling-mask-5":  "masks tool results except the newest 5",
	"clear-100k":      "masks old tool results above 100,000 tokens",
	"auto":            "hides what costs least to hide, when it pays off",
	"auto:frugal":     "like auto, hides earlier",
	"auto:faithful":   "like auto, keeps more",
}

func (v *visit) policies(chosen string) (list []policyChoice) {
	current := ""
	for _, set := range v.s.Settings() {
		if set.Name == "policy" {
			current = set.Value
		}
	}
	for _, name := range v.Sessions.Options().Policies.Names() {
		about, ok := policyWords[name]
		if !ok {
			about = "a policy of your own"
		}
		list = append(list, policyChoice{Name: name, About: about, Current: name == current, Chosen: name == chosen || chosen == "" && name == current})
	}
	return list
}

func askReduce(v *visit) (*panel, error) {
	name := v.r.FormValue("policy")
	out := &panel{Title: "Reduce now", Policies: v.policies(name)}
	if name == "" {
		out.Says = []string{"Choose a policy to see what it would hide now, even if its trigger is not reached. Nothing changes before you apply it."}
		return out, nil
	}
	done, why, err := v.reduceBy(session.ReduceOptions{Policy: name, DryRun: true})
	if err != nil {
		return nil, err
	}
	if why != "" {
		out.Refuse = name + " hides nothing now: " + why
		return out, nil
	}
	out.Button, out.Fields = "Apply "+name, values("policy", name)
	out.Price = v.price(done.Price)
	out.Planned = plannedWords(done)
	out.Notes = []string{"The policy of the session stays the same; this is done once. It can be undone."}
	if done.Reason != "" {
		out.Notes = append(out.Notes, sentence(visible.Line(done.Reason)))
	}
	return out, nil
}

// plannedWords says what each stage hides.
func plannedWords(done *session.Reduction) (list []string) {
	for _, pl := range done.Planned {
		var what []string
		if n := len(pl.Messages); n > 0 {
			what = append(what, pluralOf(n, "message"))
		}
		if pl.Blocks > 0 {
			what = append(what, pluralOf(pl.Blocks, "block"))
		}
		list = append(list, fmt.Sprintf("%s hides %s: %s → %s tokens. %s", visible.Line(pl.Stage), strings.Join(what, " and "),
			thousands(pl.Before), thousands(pl.After), sentence(visible.Line(pl.Reason))))
	}
	return list
}

func doReduce(v *visit) (*outcome, error) {
	name := v.r.FormValue("policy")
	if name == "" {
		return nil, badRequest("no policy is chosen")
	}
	done, why, err := v.reduceBy(session.ReduceOptions{Policy: name})
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, refusal(visible.Line(name) + " hides nothing now: " + why)
	}
	out := v.reduced(fmt.Sprintf("%s reduced the context: %s → %s tokens.", visible.Line(name), thousands(done.Before), thousands(done.After)), done)
	out.Notes = plannedWords(done)
	return out, nil
}
