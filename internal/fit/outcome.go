package fit

import (
	"bytes"
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// Outcome says what was done with a request. Sizes are in the provider's tokens. Planned and
// what follows it describe the plan of this request; Before and After are the estimated sizes
// of the prompt without and with it.
type Outcome struct {
	// Session is the session that keeps the reductions, "" for none.
	Session furl.SessionID `json:"session,omitempty"`
	Format  furl.Format    `json:"format"`
	Model   string         `json:"model"`
	Policy  string         `json:"policy,omitempty"`
	// Changed reports whether the body differs from the request's. Note is why the body
	// was not reduced or recorded.
	Changed bool   `json:"changed"`
	Note    string `json:"note,omitempty"`
	// Limit is the largest prompt that was planned for, 0 if the window is unknown.
	Limit int `json:"limit"`
	policy.Outcome
	// Steps are what the stages of the policy did, in order.
	Steps []Step `json:"steps"`
	// Reductions are those of this request, and earlier ones that hide something of it
	// (C4).
	Reductions []session.Recorded `json:"reductions"`
	// Hidden is what the body does not show as the request has it.
	Hidden []Hidden `json:"hidden"`
	// Cost is the cost of this request's reductions together, in US dollars.
	Cost furl.Cost `json:"cost"`
}

// Step is what one stage of a policy did.
type Step struct {
	Stage   string `json:"stage"`
	Skipped string `json:"skipped,omitempty"` // why it did nothing
	Hidden  int    `json:"hidden"`            // messages or blocks
	Before  int    `json:"context_size_before"`
	After   int    `json:"context_size_after"`
}

// Hidden is a block of the request that the body does not show, or shows otherwise.
type Hidden struct {
	// Message is the index of the message in the request's list, from 0, and Block that of
	// the block in it. Message is -1 if the request has it in other messages.
	Message int `json:"message"`
	Block   int `json:"block"`
	// Handle names it in the session (furl get, memory_get).
	Handle string `json:"handle,omitempty"`
	// By is the reduction; see Outcome.Reductions.
	By furl.Seq `json:"reduction_id"`
}

// setPlan describes the plan of a request.
func (o *Outcome) setPlan(f *policy.Fit) {
	o.Limit = f.Budget.Room()
	for _, st := range f.Plan.Steps {
		o.Steps = append(o.Steps, Step{st.Stage, st.Skipped, st.Hidden, st.Before, st.After})
	}
	for _, red := range f.Plan.Reductions {
		o.Cost.Rewrite += red.Cost.Rewrite
		o.Cost.PerRequest += red.Cost.PerRequest
		o.Cost.Own += red.Cost.Own
		o.Cost.Remaining = max(o.Cost.Remaining, red.Cost.Remaining)
	}
}

// MarshalJSON encodes a result as {"body": …, "outcome": …, "events": […]}. The body has
// its own bytes.
func (r *Result) MarshalJSON() ([]byte, error) {
	outcome, err := json.Marshal(r.Outcome)
	if err != nil {
		return nil, err
	}
	events, err := json.Marshal(namedEvents(r.Events))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(r.Body)+len(outcome)+len(events)+40)
	out = append(out, `{"body":`...)
	out = append(out, bytes.TrimSpace(r.Body)...)
	out = append(out, `,"outcome":`...)
	out = append(out, outcome...)
	out = append(out, `,"events":`...)
	out = append(out, events...)
	return append(out, '}'), nil
}

// namedEvent is an event with its name, and the record that it follows from.
type namedEvent struct {
	Event  string      `json:"event"`
	Record furl.Seq    `json:"record"`
	Data   event.Event `json:"data"`
}

func namedEvents(moments []event.Moment) []namedEvent {
	list := []namedEvent{}
	for _, m := range moments {
		for _, e := range m.Events {
			list = append(list, namedEvent{e.Name(), m.Record.Seq, e})
		}
	}
	return list
}
