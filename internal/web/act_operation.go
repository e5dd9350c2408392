package web

import (
	"github.com/furlhq/furl/internal/operation"
)

// call is a use of an operation on the visit's session. what is what the chosen blocks are
// called.
func (v *visit) call(what string) *operation.Call {
	return &operation.Call{Context: v.r.Context(), Sessions: v.Sessions, Session: v.s, What: what, Compactor: v.Compactor}
}

// ask returns the panel of an operation: what it would do, and what that costs. params are
// names and values of the form.
func (v *visit) ask(name string, in any, what, button string, params ...string) (*panel, error) {
	c := v.call(what)
	c.Preview = true
	r, err := operation.Named(name).Do(c, in)
	if err != nil {
		return nil, err
	}
	out := &panel{Title: r.Title, Button: button, Fields: values(params...)}
	if r.Nothing != "" {
		out.Refuse = r.Nothing
		return out, nil
	}
	out.Says, out.Notes = r.Effects, r.Notes
	if r.Price != nil {
		out.Price = v.price(*r.Price)
	}
	return out, nil
}

// do does an operation.
func (v *visit) do(name string, in any, what string) (*outcome, error) {
	r, err := operation.Named(name).Do(v.call(what), in)
	if err != nil {
		return nil, err
	}
	if r.Nothing != "" {
		return nil, refusal(r.Nothing)
	}
	out := &outcome{Text: r.Text(false), Notes: r.Notes}
	if r.Price != nil {
		out.Price = v.price(*r.Price)
	}
	if r.Undo != nil {
		v.undoneBy(out, r.Undo)
	}
	return out, nil
}
