package web

import (
	"slices"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
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

// undoing returns the input that undoes reductions.
func undoing(list []furl.Seq) *operation.RestoreInput {
	in := &operation.RestoreInput{}
	for _, seq := range list {
		in.Handles = append(in.Handles, seqKey(seq))
	}
	return in
}

func askUndo(v *visit) (*panel, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	if _, err := v.recorded(list[0]); err != nil {
		return nil, err
	}
	out, err := v.ask("restore", undoing(list), "", "Undo")
	if err != nil {
		return nil, err
	}
	for _, seq := range list {
		out.Fields.Add("reduction", seqKey(seq))
	}
	if out.Refuse != "" {
		out.Links = []button{*v.button("again", "Hide it again", "reduction", seqKey(list[0]))}
	}
	return out, nil
}

func doUndo(v *visit) (*outcome, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	if _, err := v.recorded(list[0]); err != nil {
		return nil, err
	}
	out, err := v.do("restore", undoing(list), "")
	if err != nil {
		return nil, err
	}
	out.NoUndo = "There is no redo. You can hide the same again."
	if len(list) > 1 {
		out.NoUndo = "There is no redo. To hide the same again, use the markers of the reductions."
	}
	return out, nil
}

func askAgain(v *visit) (*panel, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	return v.ask("hide", &operation.HideInput{Again: list[0]}, "", "Hide again", "reduction", seqKey(list[0]))
}

func doAgain(v *visit) (*outcome, error) {
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	return v.do("hide", &operation.HideInput{Again: list[0]}, "")
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
	applied, err := v.ask("reduce", &operation.ReduceInput{Policy: name}, "", "Apply "+name, "policy", name)
	if err != nil {
		return nil, err
	}
	if applied.Refuse != "" {
		out.Refuse = applied.Refuse
		return out, nil
	}
	applied.Title, applied.Policies = out.Title, out.Policies
	return applied, nil
}

func doReduce(v *visit) (*outcome, error) {
	name := v.r.FormValue("policy")
	if name == "" {
		return nil, badRequest("no policy is chosen")
	}
	return v.do("reduce", &operation.ReduceInput{Policy: name}, "")
}
