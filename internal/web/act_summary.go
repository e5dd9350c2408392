package web

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/session"
)

// summaryParam returns the summary that the parameter "reduction" names: one in use, or
// without the parameter the one that waits for approval.
func (v *visit) summaryParam() (*session.Recorded, error) {
	if v.r.FormValue("reduction") == "" {
		if w := v.s.WaitingSummary(); w != nil {
			return w, nil
		}
		return nil, notFound("no summary waits for approval")
	}
	list, err := v.reductionParams()
	if err != nil {
		return nil, err
	}
	r, err := v.recorded(list[0])
	if err == nil && r.Summary == "" {
		err = notFound("reduction %d is not a summary", r.Seq)
	}
	return r, err
}

// earlierTexts returns the other texts that a summary has had, newest first.
func (v *visit) earlierTexts(r *session.Recorded) (list []string) {
	for _, other := range v.s.Reductions() {
		if r.Number > 0 && other.Number == r.Number && other.Seq != r.Seq && other.Summary != "" {
			list = append([]string{other.Summary}, list...)
		}
	}
	return list
}

func askEdit(v *visit) (*panel, error) {
	r, err := v.summaryParam()
	if err != nil {
		return nil, err
	}
	out := &panel{Title: "Edit the summary that waits", Button: "Save", Fields: values(), Text: &r.Summary}
	if r.Seq == 0 {
		out.Price = v.samePrice("The summary is not in use before you approve it.")
		return out, nil
	}
	out.Title, out.Fields = fmt.Sprintf("Edit summary %d", r.Number), values("reduction", seqKey(r.Seq))
	out.Earlier = v.earlierTexts(r)
	if !r.Shown {
		out.Refuse, out.Text = "The model does not see this summary, because it was undone or something newer replaces it.", nil
		return out, nil
	}
	price, err := v.s.PriceOfEdit(r.Seq, r.Summary+" ")
	if err != nil {
		return nil, err
	}
	price.After, price.PerRequest = price.Before, 0 // they depend on the new text
	out.Price = v.price(price)
	out.Price.Size = "The next request changes by as many tokens as you add or remove."
	out.Notes = []string{"The model sees the new text from the next request on. The old one stays in the session, and this can be undone."}
	return out, nil
}

func doEdit(v *visit) (*outcome, error) {
	r, err := v.summaryParam()
	if err != nil {
		return nil, err
	}
	out, err := v.do("edit-summary", &operation.EditInput{Reduction: &r.Seq, Text: v.r.PostFormValue("text")}, "")
	if err == nil && r.Seq == 0 {
		out.Links = []button{*v.button("approve", "Approve it")}
	}
	return out, err
}

func askDecide(v *visit) (*panel, error) {
	if v.s.WaitingSummary() == nil {
		return nil, notFound("no summary waits for approval")
	}
	if v.lastName() == "refuse" {
		out, err := v.ask("refuse", &operation.DecideInput{}, "", "Refuse")
		if err == nil {
			out.Danger = true
			out.Price = v.samePrice("Nothing else changes. What the summary has cost counts as furl's own cost.")
		}
		return out, err
	}
	out, err := v.ask("approve", &operation.DecideInput{}, "", "Approve")
	if err != nil { // it cannot be used now
		return &panel{Title: "Use the summary that waits", Fields: values(), Refuse: operation.Sentence(err.Error())}, nil
	}
	out.Links = []button{*v.button("edit", "Edit the text first")}
	return out, nil
}

func doDecide(v *visit) (*outcome, error) {
	out, err := v.do(v.lastName(), &operation.DecideInput{}, "")
	if err == nil && v.lastName() == "refuse" {
		out.NoUndo = "This cannot be undone."
	}
	return out, err
}

// compactInput reads the form of compact: handles in one line, and those that were selected.
func (v *visit) compactInput() (*operation.CompactInput, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	in := &operation.CompactInput{Focus: v.r.Form.Get("focus")}
	for _, line := range v.r.Form["at"] {
		in.Handles = append(in.Handles, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })...)
	}
	if len(in.Handles) > maxPicked {
		return nil, badRequest("more than %d messages or blocks are selected", maxPicked)
	}
	return in, nil
}

func askCompact(v *visit) (*panel, error) {
	in, err := v.compactInput()
	if err != nil {
		return nil, err
	}
	out, err := v.ask("compact", in, "", "Compact", query(&operation.Blocks{Handles: in.Handles})...)
	if err != nil {
		return nil, err
	}
	if v.Compactor == nil {
		out.Refuse, out.Notes = operation.NoProvider, nil
		return out, nil
	}
	if _, wanted := v.Compactor.Wanted(v.s); wanted {
		out.Links = []button{*v.button("cancel", "Do not write it")}
		return out, nil
	}
	out.Choose = &input{"at", "Only these messages", "record numbers or ranges, such as 40-120", strings.Join(in.Handles, " ")}
	out.Inputs = []input{{"focus", "Pay attention to", "optional, such as: the failing tests and what was tried", in.Focus}}
	if model, now := v.Compactor.WritesNow(v.s); now {
		out.Notes = append(out.Notes, fmt.Sprintf("It is written now by %s, with the key of summaries.key_env. That can take a minute.", visible.Line(model)))
	} else {
		out.Button = "Compact at the next request"
	}
	return out, nil
}

func doCompact(v *visit) (*outcome, error) {
	in, err := v.compactInput()
	if err != nil {
		return nil, err
	}
	out, err := v.do("compact", in, "")
	if err == nil && out.Undo != nil && out.Undo.What == "undo" {
		out.Links = []button{*v.button("edit", "Read and edit the summary", "reduction", out.Undo.Query.Get("reduction"))}
	}
	return out, err
}

func askCancel(v *visit) (*panel, error) {
	out, err := v.ask("compact", &operation.CompactInput{Cancel: true}, "", "Do not compact")
	if err == nil {
		out.Price = v.samePrice("No summary was written yet.")
	}
	return out, err
}

func doCancel(v *visit) (*outcome, error) {
	return v.do("compact", &operation.CompactInput{Cancel: true}, "")
}
