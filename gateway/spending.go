package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/spending"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Limits in dollars and tokens refuse a request before it is sent, with status 400:
// clients show the message of a 400 and do not retry it. Requests that are under way when
// a limit is reached are completed.

// SpendingUse is how much of a limit in dollars or tokens is used.
type SpendingUse = spending.Use

// anthropicBilling is the type of Anthropic's errors about billing. Claude Code 2.1.332
// sends a request that got another 400 up to five times more, each time with fewer betas.
const anthropicBilling = "billing_error"

// maxSpendingRead bounds how long a request waits for the sums of the store.
const maxSpendingRead = 5 * time.Second

// spendingLimits returns the limits of a tenant. ok is false if none is about dollars or
// tokens.
func (g *Gateway) spendingLimits(t furl.Tenant) (l access.Limits, ok bool) {
	if g.o.Limits == nil {
		return l, false
	}
	l = g.o.Limits.Of(t)
	return l, spending.Applies(&l)
}

// readSpending reads the sums of a tenant. If that fails, the sums of the
// last successful read apply.
func (g *Gateway) readSpending(ctx context.Context, t furl.Tenant) {
	ctx, cancel := context.WithTimeout(ctx, maxSpendingRead)
	defer cancel()
	if err := g.spending.Read(ctx, g.sessions.Store(), t, g.o.Now()); err != nil {
		g.log.Warn("spending of other gateways could not be read", "error", upstream.Text(err))
	}
}

// checkSpending returns the refusal of a request beyond a limit in dollars or tokens. It
// logs limits that are used by 80%, once a day. key has no session if the request is of
// none.
func (g *Gateway) checkSpending(ctx context.Context, key furl.SessionKey, meta *storage.Meta) error {
	l, ok := g.spendingLimits(key.Tenant)
	if !ok {
		return nil
	}
	g.readSpending(ctx, key.Tenant)
	if key.Session != "" {
		g.spending.Note(key, meta, g.o.Now())
	}
	for _, u := range g.spending.Uses(&l, key, meta, g.o.Now()) {
		if u.Reached() {
			g.metrics.limited.WithLabelValues(u.Limit).Inc()
			g.log.Info("request refused: spending limit reached", "limit", u.Limit, "used", u.Used, "most", u.Most, "tenant", u.Tenant, "session", u.Session, "project", u.Project)
			return &protocol.Refusal{Status: http.StatusBadRequest, Message: u.Refusal(g.o.Now())}
		}
		if g.spending.Warn(u, g.o.Now()) {
			g.log.Warn("spending limit nearly reached", "limit", u.Limit, "used", u.Used, "most", u.Most, "tenant", u.Tenant, "session", u.Session, "project", u.Project)
		}
	}
	return nil
}

// checkSpendingOf is checkSpending for a request of furl.
func (g *Gateway) checkSpendingOf(ctx context.Context, s *session.Session) error {
	info := s.Info()
	return g.checkSpending(ctx, info.SessionKey, &info.Meta)
}

// checkSpending is Gateway.checkSpending for the first time that a call is sent. limited
// reports whether there are limits, so that furl reads the reply. reads is
// Exchange.Reads.
func (c *call) checkSpending(ctx context.Context, reads bool) (limited bool, err error) {
	t := tenantOf(c.g.admissionOf(c.r))
	if _, limited = c.g.spendingLimits(t); !limited || c.rt.endpoint.Count || c.allowed {
		return limited && !c.rt.endpoint.Count, nil
	}
	key, meta := furl.SessionKey{Tenant: t}, storage.Meta{}
	if reads {
		info := c.x.Session.Info()
		if key, meta = info.SessionKey, info.Meta; info.Records == 0 { // it begins with the request
			h := furlhttp.HintsOf(c.r.Header.Get, c.request)
			meta.Hint, meta.Parent, meta.Project = h.Hint, h.Parent, exchange.WorkingFolder(c.request)
		}
	}
	if err := c.g.checkSpending(ctx, key, &meta); err != nil {
		if r, ok := errors.AsType[*protocol.Refusal](err); ok && c.format == furl.FormatAnthropic {
			r.Type = anthropicBilling
		}
		return true, err
	}
	c.allowed = true
	return true, nil
}

// spent adds a reply to the sums.
func (c *call) spent(r *exchange.Reply) {
	info := c.x.Session.Info()
	if _, ok := c.g.spendingLimits(info.Tenant); !ok {
		return
	}
	if r.RecordErr != nil && r.Fit != nil {
		hint := info.Hint
		if info.Parent != "" {
			hint = info.Parent
		}
		c.g.spentAside(info.Tenant, hint, r.Fit.Model, r.Reply)
	}
	c.g.noteSpending(c.x.Session)
}

// noteSpending adds what a session has recorded to the sums.
func (g *Gateway) noteSpending(s *session.Session) {
	info := s.Info()
	if _, ok := g.spendingLimits(info.Tenant); ok {
		g.spending.Note(info.SessionKey, &info.Meta, g.o.Now())
	}
}

// spentAside adds a reply that is in no session's ledger to the sums. model is the name in
// the request.
func (g *Gateway) spentAside(t furl.Tenant, hint, model string, r *protocol.Reply) {
	used := r.Passes.Sum(r.Usage)
	if used == (furl.Usage{}) {
		return
	}
	of := func(name string) furl.Model { return g.sessions.Model(name, r.Format) }
	m := of(model)
	billed := price.Request{Model: &m, Models: of, Usage: r.Usage, Passes: r.Passes, Terms: r.Terms, At: g.o.Now()}
	cost, _ := billed.Cost() // 0 if a price is unknown
	g.spending.Aside(t, hint, cost.Sum(), used.Prompt()+used.Output, g.o.Now())
}

// countUnrecorded makes the reply of a request that is not recorded count, if there are
// limits in dollars or tokens.
func (c *call) countUnrecorded(resp *http.Response) {
	t := tenantOf(c.g.admissionOf(c.r))
	if _, ok := c.g.spendingLimits(t); !ok || c.rt.endpoint.Count || resp.StatusCode >= 300 {
		return
	}
	b := &countedBody{ReadCloser: resp.Body, reply: wire.NewReplyReader(c.rt.codec, resp.StatusCode, resp.Header.Get("Content-Type"))}
	model, hint := "", ""
	if c.request != nil {
		h := furlhttp.HintsOf(c.r.Header.Get, c.request)
		if model, hint = c.request.Model, h.Hint; h.Parent != "" {
			hint = h.Parent
		}
	}
	b.ended = func(r *protocol.Reply) {
		if model == "" {
			model = r.Model
		}
		c.g.spentAside(t, hint, model, r)
	}
	resp.Body = b
}

// countedBody is the body of a reply whose usage is counted when it ends.
type countedBody struct {
	io.ReadCloser
	reply *wire.ReplyReader
	once  sync.Once
	ended func(*protocol.Reply)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.reply.Write(p[:n]) // its error is always nil
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close counts the part of the reply that has arrived.
func (b *countedBody) Close() error {
	b.end(io.ErrUnexpectedEOF)
	return b.ReadCloser.Close()
}

func (b *countedBody) end(cut error) {
	b.once.Do(func() {
		reply, _ := b.reply.Reply(cut) // what cannot be decoded has no usage
		b.ended(reply)
	})
}

// Spending is what a tenant has spent, and the limits that are used by 80% or more.
type Spending struct {
	// Today is the sum of this day, in US dollars of list prices.
	Today float64 `json:"today"`
	// Near are limits per day and project. Those of sessions are in the sessions'
	// statuses.
	Near []SpendingUse `json:"near,omitempty"`
}

// spendingOf returns the spending of a tenant, nil if it has no limits.
func (g *Gateway) spendingOf(ctx context.Context, t furl.Tenant) *Spending {
	l, ok := g.spendingLimits(t)
	if !ok {
		return nil
	}
	g.readSpending(ctx, t)
	return &Spending{g.spending.Today(t, g.o.Now()), g.spending.Near(&l, t, g.o.Now())}
}

// spendingNear returns the limits that are used by 80% or more: those of a session, or if
// it is nil, those per day and project.
func (g *Gateway) spendingNear(ctx context.Context, t furl.Tenant, s *session.Session) (list []SpendingUse) {
	l, ok := g.spendingLimits(t)
	if !ok {
		return nil
	}
	g.readSpending(ctx, t)
	if s == nil {
		return g.spending.Near(&l, t, g.o.Now())
	}
	info := s.Info()
	for _, u := range g.spending.Uses(&l, info.SessionKey, &info.Meta, g.o.Now()) {
		if u.Near() {
			list = append(list, u)
		}
	}
	return list
}

// maxNear bounds the list of limits in the status of operators.
const maxNear = 100

// spendingOfAll returns the spending of all tenants that have sent requests to this
// gateway, nil if there are no limits.
func (g *Gateway) spendingOfAll(ctx context.Context) *Spending {
	if len(g.o.TenantSecret) == 0 {
		return g.spendingOf(ctx, "")
	}
	var sum *Spending
	for _, t := range g.spending.Tenants() {
		if one := g.spendingOf(ctx, t); one != nil {
			if sum == nil {
				sum = new(Spending)
			}
			sum.Today += one.Today
			sum.Near = append(sum.Near, one.Near...)
		}
	}
	if sum != nil {
		sum.Near = sum.Near[:min(len(sum.Near), maxNear)]
	}
	return sum
}
