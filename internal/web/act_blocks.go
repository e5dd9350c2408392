package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// picked are the messages or blocks that an action is about.
type picked struct {
	At     []string // their handles
	Spans  []furl.Span
	Name   string // what they are, in words
	Hold   furl.Hold
	Hidden bool // some of them are hidden
	Marked bool // a marker hides some of them
	Inside bool // some of them can be hidden inside their step
}

// maxPicked is the number of handles that an action takes.
const maxPicked = 200

// pick reads the request parameters "at".
func (v *visit) pick() (*picked, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	p := &picked{At: v.r.Form["at"]}
	if len(p.At) == 0 {
		return nil, badRequest("nothing is selected")
	}
	if len(p.At) > maxPicked {
		return nil, badRequest("more than %d messages or blocks are selected", maxPicked)
	}
	for _, at := range p.At {
		if _, err := recall.ParseHandle(at); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	var err error
	if p.Spans, err = v.s.Spans(p.At...); err != nil {
		return nil, err
	}
	return p, v.read(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		p.describe(m)
		return nil
	})
}

// describe sets what the blocks are, and how the model sees them.
func (p *picked) describe(m *moment) {
	names := make(map[string]bool)
	for _, sp := range p.Spans {
		m.blocksOf(sp, func(pos furl.Pos, msg *furl.Message, b *furl.Block) {
			part := m.part(pos, msg, b)
			name := "this message"
			switch {
			case b.IsResult():
				name, p.Inside = "this result", true
			case b.Kind == furl.KindCall:
				name, p.Inside = "this call", true
			}
			if part.Title != "" && b.IsResult() {
				name = "the result of " + part.Title
			} else if part.Title != "" {
				name = "the call " + part.Title
			}
			names[name], p.Name = true, name
			if by := m.state.ShownBy(pos); by != 0 {
				p.Hidden = true
				if _, ok := m.placeholder(pos); !ok {
					p.Marked = true
				}
			}
			p.Hold = max(p.Hold, m.holdOf(pos))
		})
	}
	if len(names) != 1 {
		p.Name = pluralOf(len(p.At), "message")
		if len(p.At) == 1 {
			p.Name = "this message"
		}
	}
}

// holdOf returns the hold on a block that the model sees, or sees a placeholder of.
func (m *moment) holdOf(pos furl.Pos) furl.Hold {
	for i := range m.view.Messages {
		if sh := &m.view.Messages[i]; sh.Seq == pos.Msg {
			for j := range sh.Blocks {
				if sh.Blocks[j].Pos == pos {
					return sh.Blocks[j].Hold
				}
			}
		}
	}
	return 0
}

// query returns the parameters that name the blocks.
func (p *picked) query(more ...string) []string {
	for _, at := range p.At {
		more = append(more, "at", at)
	}
	return more
}

func askExpand(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	out := &panel{Title: "Expand " + p.Name, Button: "Expand", Fields: values(p.query()...)}
	if !p.Hidden {
		out.Refuse = "The model sees all of it already."
		return out, nil
	}
	done, err := v.s.Restore(v.r.Context(), session.RestoreOptions{Spans: p.Spans, DryRun: true})
	if err != nil {
		return nil, err
	}
	out.Price = v.price(done.Price)
	out.Says = []string{"The model sees the original again."}
	if p.Marked {
		out.Says = append(out.Says, "A marker replaces its whole step, so the whole step is shown: a result cannot be shown without its call.")
	}
	out.Notes = []string{"Policies hide it again only if the context does not fit otherwise."}
	return out, nil
}

func doExpand(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	if !p.Hidden {
		return nil, refusal("The model sees all of it already.")
	}
	done, err := v.s.Restore(v.r.Context(), session.RestoreOptions{Spans: p.Spans})
	if err != nil {
		return nil, err
	}
	out := &outcome{Text: fmt.Sprintf("The model sees %s again.", p.Name), Price: v.price(done.Price)}
	query := p.query()
	if p.Marked || !p.Inside {
		query = p.query("steps", "1")
	}
	out.Links = []button{*v.button("hide", "Hide it again", query...)}
	out.NoUndo = "This has no undo. You can hide it again."
	return out, nil
}

func (v *visit) wholeSteps() bool { return v.r.FormValue("steps") != "" }

func askHide(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	out := &panel{Title: "Hide " + p.Name, Button: "Hide", Fields: values(p.query()...)}
	if v.wholeSteps() {
		out.Title, out.Fields = "Hide the step of "+p.Name, values(p.query("steps", "1")...)
		out.Says = []string{"A marker replaces the whole step: the message, its calls and their results."}
	} else {
		out.Says = []string{"The model sees a placeholder in its place. The call stays, and the model can ask for the original."}
	}
	done, why, err := v.hide(p, true)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		out.Refuse, out.Says = why, nil
	default:
		out.Price = v.price(done.Price)
		out.Notes = []string{"The original stays in the session. This can be undone."}
	}
	return out, nil
}

// hide hides what is picked, or says why that is not possible.
func (v *visit) hide(p *picked, dry bool) (done *session.Reduction, why string, err error) {
	stage := &policy.Hide{Spans: p.Spans, Steps: v.wholeSteps()}
	return v.reduceBy(session.ReduceOptions{Stage: stage, DryRun: dry})
}

// reduceBy reduces, or says why nothing was hidden.
func (v *visit) reduceBy(o session.ReduceOptions) (done *session.Reduction, why string, err error) {
	done, err = v.s.Reduce(v.r.Context(), o)
	if err != nil || len(done.Planned) > 0 {
		return done, "", err
	}
	if why = done.Reason; why == "" {
		why = "nothing to hide"
		var skipped []string
		for _, st := range done.Steps {
			if st.Skipped != "" && !slices.Contains(skipped, st.Skipped) {
				skipped = append(skipped, st.Skipped)
			}
		}
		if len(skipped) > 0 {
			why = strings.Join(skipped, "; ")
		}
	}
	return done, sentence(why), nil
}

func doHide(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	done, why, err := v.hide(p, false)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, refusal(why)
	}
	return v.reduced("The model no longer sees "+p.Name+".", done), nil
}

// reduced is the outcome of a reduction, whose Undo undoes all records of it.
func (v *visit) reduced(text string, done *session.Reduction) *outcome {
	var query []string
	for _, pl := range done.Planned {
		query = append(query, "reduction", seqKey(pl.Record))
	}
	return &outcome{Text: text, Price: v.price(done.Price), Undo: v.button("undo", "Undo", query...)}
}

// holds are the holds by the names of their actions.
var holds = map[string]furl.Hold{"pin": furl.Pin, "prefer": furl.Keep, "unpin": furl.Release}

// holdAction returns the name of the action that sets a hold.
func holdAction(h furl.Hold) string {
	switch h {
	case furl.Pin:
		return "pin"
	case furl.Keep:
		return "prefer"
	}
	return "unpin"
}

// lastName returns the last element of the path.
func (v *visit) lastName() string {
	path := v.r.URL.Path
	return path[strings.LastIndexByte(path, '/')+1:]
}

func askHold(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	out := &panel{Fields: values(p.query()...), Price: v.samePrice("A pin changes only what policies may hide later.")}
	switch v.lastName() {
	case "pin":
		out.Title, out.Button = "Pin "+p.Name, "Pin"
		out.Says = []string{"No policy hides it, not even when the window is full."}
		if p.Hidden {
			out.Notes = []string{"It is hidden now and stays hidden. Expand it to show it to the model."}
		}
		if p.Hold == furl.Pin {
			out.Refuse = "It is pinned already."
		}
	case "prefer":
		out.Title, out.Button = "Prefer to keep "+p.Name, "Prefer"
		out.Says = []string{"Policies hide it only if the context does not fit otherwise."}
		switch p.Hold {
		case furl.Keep:
			out.Refuse = "Policies already prefer to keep it."
		case furl.Pin:
			out.Notes = []string{"It is pinned, which is stronger. Unpin it first if policies should hide it when they must."}
			out.Refuse = "It is pinned, which is stronger."
		}
	default:
		out.Title, out.Button = "Unpin "+p.Name, "Unpin"
		out.Says = []string{"Policies may hide it like everything else."}
		if p.Hold == 0 && !p.Hidden {
			out.Refuse = "It is not pinned."
		}
	}
	return out, nil
}

func doHold(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	what := v.lastName()
	if err := v.s.Hold(v.r.Context(), holds[what], p.Spans...); err != nil {
		return nil, err
	}
	out := &outcome{Undo: v.button(holdAction(p.Hold), "Undo", p.query()...)}
	switch what {
	case "pin":
		out.Text = "Pinned " + p.Name + ": no policy hides it."
	case "prefer":
		out.Text = "Policies prefer to keep " + p.Name + "."
	default:
		out.Text = "Unpinned " + p.Name + ": policies may hide it."
	}
	return out, nil
}
