package web

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/price"
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

// maxFocus is the length of the longest focus of a summary, in bytes.
const maxFocus = 2000

func askCompact(v *visit) (*panel, error) {
	out := &panel{Title: "Compact now", Button: "Compact", Fields: values()}
	out.Says = []string{"A model writes a summary of the old messages, and the model of the session sees it in their place. The originals stay in the session."}
	if v.Compactor == nil {
		out.Refuse = "No gateway runs here, so there is no provider to ask. Start furl serve and open the page there."
		return out, nil
	}
	size := v.s.Context("").Size
	model, now := v.Compactor.WritesNow(v.s)
	out.Price = &operation.PriceWords{Size: fmt.Sprintf("The next request now has %s. How many are left depends on the summary.", operation.Tokens(size)),
		Lines: []string{v.priceOfSummary(cmp.Or(model, v.s.Meta().Model), size), "Then everything after it is written to the prompt cache again, once."}}
	if focus, wanted := v.Compactor.Wanted(v.s); wanted {
		out.Refuse = "A summary is already to be written at the session's next request."
		if focus != "" {
			out.Refuse = "A summary is already to be written at the session's next request, with attention to: " + visible.Line(focus)
		}
		out.Links = []button{*v.button("cancel", "Do not write it")}
		return out, nil
	}
	out.Input = &input{"focus", "Pay attention to", "optional, such as: the failing tests and what was tried"}
	if now {
		out.Notes = []string{fmt.Sprintf("It is written now by %s, with the key of summaries.key_env. That can take a minute.", visible.Line(model))}
	} else {
		out.Button = "Compact at the next request"
		out.Notes = []string{"furl has no key of its own (summaries.key_env), so the summary is written with the agent's key, right after the session's next request, if furl is not restarted before. The request after that one is shorter."}
	}
	return out, nil
}

// priceOfSummary says what it costs to have a model write a summary of the context.
func (v *visit) priceOfSummary(model string, size int) string {
	m := v.s.Model(model)
	prices := price.For(&m, size, time.Now())
	if !price.Known(prices) {
		return "The summary costs one request to a model."
	}
	return fmt.Sprintf("The summary costs one request to %s: up to %s for its prompt, if none of it is cached, and the tokens that it writes.",
		visible.Line(model), operation.Money(price.Of(price.Complete(prices), furl.Usage{CacheWrite: size})))
}

func doCompact(v *visit) (*outcome, error) {
	if v.Compactor == nil {
		return nil, refusal("No gateway runs here, so there is no provider to ask. Start furl serve and open the page there.")
	}
	focus := strings.TrimSpace(strings.ToValidUTF8(v.r.PostFormValue("focus"), "\uFFFD"))
	if len(focus) > maxFocus {
		return nil, badRequest("The focus is longer than %s bytes.", thousands(maxFocus))
	}
	before := v.s.Context("").Size
	rec, err := v.Compactor.Compact(v.r.Context(), v.s, focus)
	if err != nil {
		return nil, refusal(operation.Sentence("no summary was written: " + visible.Line(err.Error())))
	}
	if rec == 0 {
		return &outcome{Text: "The summary is written right after the session's next request.", Undo: v.button("cancel", "Undo")}, nil
	}
	return v.compacted(rec, before), nil
}

// compacted is the outcome of a summary that was recorded.
func (v *visit) compacted(rec furl.Seq, before int) *outcome {
	return &outcome{
		Text: fmt.Sprintf("The context is compacted: %s → %s tokens.", thousands(before), thousands(v.s.Context("").Size)),
		Undo: v.button("undo", "Undo", "reduction", seqKey(rec)), Links: []button{*v.button("edit", "Read and edit the summary", "reduction", seqKey(rec))},
	}
}

func askCancel(v *visit) (*panel, error) {
	out := &panel{Title: "Do not compact", Button: "Do not compact", Fields: values(), Price: v.samePrice("No summary was written yet.")}
	out.Says = []string{"No summary is written at the session's next request."}
	if v.Compactor == nil {
		out.Refuse = "No summary is to be written."
	} else if _, wanted := v.Compactor.Wanted(v.s); !wanted {
		out.Refuse = "No summary is to be written."
	}
	return out, nil
}

func doCancel(v *visit) (*outcome, error) {
	if v.Compactor == nil || !v.Compactor.Cancel(v.s) {
		return nil, refusal("No summary is to be written.")
	}
	return &outcome{Text: "No summary is written at the next request.", Undo: v.button("compact", "Compact anyway")}, nil
}
