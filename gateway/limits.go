package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// begin counts an admitted request to a provider by its tenant, until end is called. If
// ok is false, the tenant is at a limit and begin has written the refusal.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request, rt *route) (end func(), ok bool) {
	tenant := identityOf(r.Context()).Tenant
	if g.o.Limits == nil {
		return func() {}, true
	}
	done, err := g.usage.Begin(g.o.Now(), tenant, g.o.Limits.Of(tenant))
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		g.refuse(w, rt, g.limited(w.Header(), limit))
		return nil, false
	}
	return done, true
}

// limited counts a refusal because of a limit, and returns it.
func (g *Gateway) limited(h http.Header, e *access.LimitError) *protocol.Refusal {
	g.metrics.limited.WithLabelValues(e.Limit).Inc()
	h.Set("Retry-After", strconv.Itoa(int(e.Retry.Seconds())))
	return &protocol.Refusal{Status: http.StatusTooManyRequests, Message: "furl: " + e.Error()}
}

// counts adds the bytes of a request and of its response to what a tenant uses.
func (g *Gateway) counts(tenant furl.Tenant, bytes int64) {
	if g.o.Limits != nil && bytes > 0 {
		g.usage.Add(g.o.Now(), tenant, bytes)
	}
}

// beginSession returns the refusal of a request that would begin a session beyond the
// limit of its tenant. Nothing of the request is recorded yet.
func (c *call) beginSession(ctx context.Context) error {
	if c.g.o.Limits == nil || c.x == nil || c.x.Session == nil || c.rt.count || c.x.Session.Head() != 0 || c.began {
		return nil
	}
	c.began = true // a request that is sent again counts once
	key := c.x.Session.Info().SessionKey
	err := c.g.usage.NewSession(c.g.o.Now(), key.Tenant, c.g.o.Limits.Of(key.Tenant), func(most int) (n int, err error) {
		for _, err := range c.g.sessions.Store().Sessions(ctx, key.Tenant, storage.SessionQuery{Limit: most}) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		return &furlhttp.RefusedError{Refusal: c.g.limited(c.Header(), limit)}
	}
	if err != nil { // as with every failure of the store, the request goes on
		c.g.log.Warn("sessions of a tenant could not be counted", "error", err)
	}
	return nil
}

// countedBody counts the bytes that are read from a body.
type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}
