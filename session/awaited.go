package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/token"
)

// A program that sends its requests itself (package internal/fit) tells furl of a reply
// only with its next request, and another process may get that one. So what the exchange
// of the reply records of its request waits in the session's metadata. It has no texts of
// the conversation.

// awaitedReply is storage.Meta.Awaited.
type awaitedReply struct {
	// Head and Body are the encoded exchange without the reply. Its parent is the record
	// of the request's prompt.
	Head []byte `json:"head"`
	Body []byte `json:"body,omitempty"`
	// Before is the size of the context before the plan.
	Before int `json:"before,omitempty"`
	// Scale, PerItem and Lifetime are those of the plan's budget.
	Scale    float64       `json:"scale,omitempty"`
	PerItem  float64       `json:"per_item,omitempty"`
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Hour     bool          `json:"hour,omitempty"`
	// Preamble is the counted size of what was sent besides the messages, Tools the share
	// of tools in it.
	Preamble token.Part `json:"preamble,omitzero"`
	Tools    float64    `json:"tools,omitempty"`
}

// await keeps what the exchange of a fit records until its reply is known.
func (s *Session) await(sent *Fit) error {
	planned := *sent
	planned.HourCache = false // Hour says so
	ex := exchangeOf(&planned, &protocol.Reply{})
	head, body, err := record.Encode(furl.Record{Seq: sent.Head + 1, Parent: sent.Head, At: sent.At, By: furl.Furl, Body: ex})
	if err != nil {
		return fmt.Errorf("keep a request until its reply is known: %w", err)
	}
	m := (&tx{s}).Meta().Clone()
	m.Awaited, err = json.Marshal(awaitedReply{
		Head: head, Body: body, Before: sent.Plan.Before, Scale: sent.Budget.Scale, PerItem: sent.Budget.PerItem,
		Lifetime: sent.Budget.Model.Caching.Lifetime, Hour: sent.HourCache, Preamble: sent.counted.Part, Tools: sent.counted.tools,
	})
	if err != nil {
		return fmt.Errorf("keep a request until its reply is known: %w", err)
	}
	m.Model = sent.Model
	s.newMeta = &m
	return nil
}

// awaited returns the fit of the request whose reply is not known yet, nil if there is
// none or the session has continued since.
func (s *Session) awaited() *Fit {
	if len(s.meta.Awaited) == 0 {
		return nil
	}
	var a awaitedReply
	err := json.Unmarshal(s.meta.Awaited, &a)
	if err != nil {
		s.all.log.Warn("what is known of a request without a reply could not be read", "session", s.key.Session, "error", err)
		return nil
	}
	r, err := record.Decode(a.Head, a.Body)
	if err != nil {
		s.all.log.Warn("what is known of a request without a reply could not be read", "session", s.key.Session, "error", err)
		return nil
	}
	ex, ok := r.Body.(*furl.Exchange)
	if !ok || r.Parent != s.log.Head() {
		return nil
	}
	m := price.WithLifetime(s.model(ex.Model), a.Lifetime)
	return &Fit{
		Model: ex.Model, View: s.log.State().View(m), Head: r.Parent, At: r.At, HourCache: a.Hour,
		Plan:     &furl.Plan{Steps: ex.Plan, Before: a.Before, After: ex.Estimated},
		Budget:   furl.Budget{Model: m, Scale: a.Scale, PerItem: a.PerItem},
		preamble: ex.Preamble, prefix: ex.View, thinking: ex.Thinking, counted: preambleSize{a.Preamble, a.Tools},
		UnknownTypes: unknownTypesOf(s.log.State()),
	}
}

// observeAwaited appends the exchange of an awaited reply, and the reply. When that came is
// not known; the records have the time of the request.
func (s *Session) observeAwaited(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	s.at = sent.At
	defer func() { s.at = time.Time{} }()
	if _, err := s.observe(ctx, sent, reply); err != nil {
		return err
	}
	m := (&tx{s}).Meta().Clone()
	m.Awaited = nil
	s.newMeta = &m
	return nil
}
