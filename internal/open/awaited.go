package open

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
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

// Await keeps what Observe records of a request until its reply is known.
func (c *Change) Await(sent *policy.Fit) error {
	planned := *sent
	planned.HourCache = false // Hour says so
	ex := exchangeOf(&planned, &protocol.Reply{})
	head, body, err := record.Encode(furl.Record{Seq: sent.Head + 1, Parent: sent.Head, At: sent.At, By: furl.Furl, Body: ex})
	if err != nil {
		return fmt.Errorf("keep a request until its reply is known: %w", err)
	}
	m := c.Meta().Clone()
	m.Awaited, err = json.Marshal(awaitedReply{
		Head: head, Body: body, Before: sent.Plan.Before, Scale: sent.Budget.Scale, PerItem: sent.Budget.PerItem,
		Lifetime: sent.Budget.Model.Caching.Lifetime, Hour: sent.HourCache, Preamble: sent.Counted, Tools: sent.ToolShare,
	})
	if err != nil {
		return fmt.Errorf("keep a request until its reply is known: %w", err)
	}
	m.Model = sent.Model
	c.SetMeta(m)
	return nil
}

// Awaited returns the fit of the request whose reply is not known yet, nil if there is
// none or the session has continued since.
func (c *Change) Awaited() *policy.Fit {
	if len(c.Meta().Awaited) == 0 {
		return nil
	}
	var a awaitedReply
	err := json.Unmarshal(c.Meta().Awaited, &a)
	if err != nil {
		c.all.log.Warn("what is known of a request without a reply could not be read", "session", c.key.Session, "error", err)
		return nil
	}
	r, err := record.Decode(a.Head, a.Body)
	if err != nil {
		c.all.log.Warn("what is known of a request without a reply could not be read", "session", c.key.Session, "error", err)
		return nil
	}
	ex, ok := r.Body.(*furl.Exchange)
	if !ok || r.Parent != c.log.Head() {
		return nil
	}
	m := price.WithLifetime(c.Model(ex.Model), a.Lifetime)
	return &policy.Fit{
		Model: ex.Model, View: c.log.State().View(m), Head: r.Parent, At: r.At, HourCache: a.Hour,
		Plan:     &furl.Plan{Steps: ex.Plan, Before: a.Before, After: ex.Estimated},
		Budget:   furl.Budget{Model: m, Scale: a.Scale, PerItem: a.PerItem},
		Preamble: ex.Preamble, Prefix: ex.View, Thinking: ex.Thinking, Counted: a.Preamble, ToolShare: a.Tools,
		UnknownTypes: UnknownTypesOf(c.log.State()),
	}
}

// ObserveAwaited appends the exchange of an awaited reply, and the reply. When that came is
// not known; the records have the time of the request.
func (c *Change) ObserveAwaited(ctx context.Context, sent *policy.Fit, reply *protocol.Reply) error {
	c.at = sent.At
	defer func() { c.at = time.Time{} }()
	if _, err := c.Observe(ctx, sent, Bodies{}, reply); err != nil {
		return err
	}
	m := c.Meta().Clone()
	m.Awaited = nil
	c.SetMeta(m)
	return nil
}
