package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl/internal/membudget"
)

// life is what stays the same for as long as a gateway's process serves,
// however often it is given other settings.
type life struct {
	underWay atomic.Int64      // requests to models
	busy     busy              // the same by tenant
	bodies   *membudget.Budget // bytes of the bodies of those
	decoded  *membudget.Budget // what they become once decoded
	draining atomic.Bool
	drained  chan struct{} // closed by Drain
	started  time.Time
	echoes   echoes
	afters   afters
	denials  denials
	metrics  *metrics
}

// With gives a gateway with other upstreams and options that goes on where this
// one is: over the same sessions, and counting on. Requests that this one has
// begun to serve it serves to their end. Summaries, TenantBy, Now and Logger stay
// as they are. Only one of the two is to be drained and closed.
func (g *Gateway) With(up Upstreams, opts *Options) (*Gateway, error) {
	n := &Gateway{sessions: g.sessions, up: up, life: g.life, summaries: g.summaries}
	if opts != nil {
		n.o = *opts
	}
	n.o.Now, n.o.Logger, n.o.Summaries, n.o.TenantBy = g.o.Now, g.o.Logger, g.o.Summaries, g.o.TenantBy
	if err := n.prepare(); err != nil {
		return nil, err
	}
	n.routes()
	return n, nil
}

// Reloaded is what came of reading the configuration anew.
type Reloaded struct {
	// File is what was read, "" if there is none.
	File string `json:"file"`
	// Changed are the settings that hold from the next request on, NeedRestart
	// those that have changed too and hold only when the gateway starts anew.
	Changed     []string `json:"changed"`
	NeedRestart []string `json:"need_restart"`
}

// reload is POST /furl/v1/reload: only from this machine, whatever the key.
func (g *Gateway) reload(r *http.Request) (any, error) {
	if g.o.Reload == nil {
		return nil, &statusError{http.StatusNotImplemented, errors.New("this gateway has no configuration to read")}
	}
	if !fromHere(r) {
		return nil, &statusError{http.StatusForbidden, errors.New("only from the machine that the gateway runs on")}
	}
	done, err := g.o.Reload(context.WithoutCancel(r.Context()))
	if err != nil {
		return nil, &statusError{http.StatusUnprocessableEntity, err}
	}
	return done, nil
}

// fromHere reports whether a request comes from this machine.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
