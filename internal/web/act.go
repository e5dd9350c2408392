package web

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// An action has two parts. GET act/NAME asks: it shows what the action would do, and
// first of all what it does to the price of the next request. POST act/NAME does it, and
// shows what has changed, with a button that undoes it where the log allows that. Both
// work as pages of their own in a browser without scripts. With scripts, the page of the
// session shows both in a panel.

// action is one thing that a person can do with a session.
type action struct {
	// ask returns the panel that the action is confirmed in. It changes nothing.
	ask func(v *visit) (*panel, error)
	// do does it. If it is nil, there is nothing to confirm.
	do func(v *visit) (*outcome, error)
}

// actions are all actions by their names in addresses.
func actions() map[string]action {
	return map[string]action{
		"expand":   {askExpand, doExpand},
		"hide":     {askHide, doHide},
		"pin":      {askHold, doHold},
		"unpin":    {askHold, doHold},
		"prefer":   {askHold, doHold},
		"undo":     {askUndo, doUndo},
		"again":    {askAgain, doAgain},
		"reduce":   {askReduce, doReduce},
		"compact":  {askCompact, doCompact},
		"cancel":   {askCancel, doCancel},
		"edit":     {askEdit, doEdit},
		"approve":  {askDecide, doDecide},
		"refuse":   {askDecide, doDecide},
		"settings": {askSettings, doSettings},
		"branches": {askBranches, nil},
		"fork":     {askFork, doFork},
		"rewind":   {askRewind, doRewind},
		"redact":   {askRedact, doRedact},
		"delete":   {askDelete, doDelete},
	}
}

// panel asks a person to confirm an action.
type panel struct {
	ID     furl.SessionID
	What   string // the name of the action
	Title  string
	Price  *operation.PriceWords // nil if the action has none
	Says   []string              // what it does, in sentences
	Notes  []string              // details after that
	Refuse string                // why it cannot be done, "" if it can
	Fields url.Values            // parameters of the action that the person does not change
	Button string
	Danger bool // it cannot be undone

	Policies []policyChoice // to choose from
	Planned  []string       // what the chosen policy would hide
	Text     *string        // to edit
	Earlier  []string       // texts before it, newest first
	Inputs   []input        // lines to fill in
	Choose   *input         // what the panel is about; another value shows another panel
	Settings []settingField
	Branches []*branch
	Links    []button
}

// input is a line that a person may fill in.
type input struct{ Name, Label, Hint, Value string }

// button leads to an action.
type button struct {
	ID    furl.SessionID
	What  string
	Label string
	Key   string // of the keyboard, "" for none
	Title string
	Query url.Values
}

// Action is the address without parameters.
func (b button) Action() string { return prefix + "/sessions/" + string(b.ID) + "/act/" + b.What }

// Href is the address of the action.
func (b button) Href() string {
	to := b.Action()
	if len(b.Query) > 0 {
		to += "?" + b.Query.Encode()
	}
	return to
}

// outcome is what an action has changed.
type outcome struct {
	ID    furl.SessionID
	Text  string
	Notes []string
	Price *operation.PriceWords
	// Undo undoes the action, nil if the log does not allow that. NoUndo says why, or
	// what can be done instead.
	Undo   *button
	NoUndo string
	Links  []button
	// Open is an address to continue at. With Reload the session's page is loaded again,
	// because the action has changed which messages it shows.
	Open, OpenLabel string
	Reload          bool
	Gone            bool // the session does not exist any more
}

// refusal is why an action cannot be done now.
func refusal(text string) error { return &problem{http.StatusConflict, text} }

// explained turns errors of packages session and policy into problems.
func explained(err error) error {
	if skip := policy.Skip(""); errors.As(err, &skip) {
		return refusal(operation.Sentence(skip.Error()))
	}
	if errors.Is(err, policy.ErrNoSummary) {
		return badRequest("The text is empty. The summary is unchanged.")
	}
	if _, held := errors.AsType[*storage.HeldError](err); held {
		return refusal(operation.Sentence(err.Error()))
	}
	if why, ok := errors.AsType[operation.Refusal](err); ok {
		return refusal(string(why))
	}
	if _, ok := errors.AsType[operation.Invalid](err); ok {
		return badRequest("%v", err)
	}
	return err
}

// registerActions registers the pages of all actions.
func (p *Page) registerActions() {
	p.session("GET /furl/sessions/{id}/act/done", p.showOutcome)
	for what, a := range actions() {
		p.session("GET /furl/sessions/{id}/act/"+what, func(v *visit) error {
			ask, err := a.ask(v)
			if err != nil {
				return explained(err)
			}
			ask.ID, ask.What = v.s.ID(), what
			v.render(http.StatusOK, v.inPanel("act"), ask)
			return nil
		})
		if a.do == nil {
			continue
		}
		p.session("POST /furl/sessions/{id}/act/"+what, func(v *visit) error {
			out, err := a.do(v)
			if err != nil {
				return explained(err)
			}
			out.ID = v.s.ID()
			v.answer(out)
			return nil
		})
	}
}

// inPanel returns the name of the template of a panel: a fragment, or a page around it.
func (v *visit) inPanel(name string) string {
	if v.isFragment() {
		return name
	}
	return name + ".tmpl"
}

// answer responds to a POST with what has changed.
func (v *visit) answer(out *outcome) {
	to := ""
	if !out.Gone {
		to = prefix + "/sessions/" + string(out.ID) + "/act/done?k=" + v.p.outcomes.add(v.s.Info().SessionKey, out)
	}
	h := v.w.Header()
	switch {
	case out.Gone && v.isFragment():
		h.Set("HX-Redirect", "/")
		v.w.WriteHeader(http.StatusNoContent)
	case out.Gone:
		http.Redirect(v.w, v.r, "/", http.StatusSeeOther)
	case v.isFragment():
		if out.Reload {
			h.Set("HX-Redirect", to)
		}
		v.render(http.StatusOK, "done", out)
	default:
		http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	}
}

// showOutcome shows what an action has changed, after a redirect.
func (p *Page) showOutcome(v *visit) error {
	out := p.outcomes.get(v.s.Info().SessionKey, v.r.FormValue("k"))
	if out == nil {
		out = &outcome{ID: v.s.ID(), Text: "The change was made."}
	}
	v.render(http.StatusOK, v.inPanel("done"), out)
	return nil
}

// outcomes keeps the newest outcomes for the pages after redirects.
type outcomes struct {
	mu   sync.Mutex
	list []keptOutcome
}

type keptOutcome struct {
	session furl.SessionKey
	key     string
	out     *outcome
}

// maxOutcomes is the number of outcomes that are kept.
const maxOutcomes = 64

// add keeps an outcome and returns its key.
func (o *outcomes) add(session furl.SessionKey, out *outcome) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == maxOutcomes {
		o.list = append(o.list[:0:0], o.list[1:]...)
	}
	key := rand.Text()
	o.list = append(o.list, keptOutcome{session, key, out})
	return key
}

// get returns the outcome of a key, nil if it is no longer kept.
func (o *outcomes) get(session furl.SessionKey, key string) *outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kept := range o.list {
		if kept.session == session && kept.key == key {
			return kept.out
		}
	}
	return nil
}

// forget drops the outcomes of a session.
func (o *outcomes) forget(session furl.SessionKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = slices.DeleteFunc(o.list, func(kept keptOutcome) bool { return kept.session == session })
}

// button returns a button of the visit's session. query are names and values.
func (v *visit) button(what, label string, query ...string) *button {
	return &button{ID: v.s.ID(), What: what, Label: label, Query: values(query...)}
}

func values(pairs ...string) url.Values {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	return q
}
