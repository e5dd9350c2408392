package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/quota"
	"github.com/furlhq/furl/internal/spending"
)

// sharedState is the state that a gateway keeps when its configuration is reloaded.
type sharedState struct {
	inFlight         atomic.Int64      // requests to models
	inFlightByTenant tenantCounts      // the same by tenant
	bodyMemory       *membudget.Budget // bytes of their bodies
	decodedMemory    *membudget.Budget // bytes of their decoded form
	draining         atomic.Bool
	reach            reach         // of the store, for /readyz
	drained          chan struct{} // closed by Drain
	started          time.Time
	echoes           echoes
	background       background
	denials          denials
	admissions       admission.State
	spending         spending.Book
	plans            quota.Book
	accountSecret    [16]byte // keys the fingerprints of accounts
	metrics          *metrics
}

// With returns a gateway with other upstreams and options that shares the sessions
// and counters of g. Requests that g is serving continue with g. Summaries,
// TenantBy, Now and Logger are copied from g. Drain and close only one of the two.
func (g *Gateway) With(up Upstreams, opts *Options) (*Gateway, error) {
	n := &Gateway{sessions: g.sessions, up: up, sharedState: g.sharedState, summaries: g.summaries, keeper: g.keeper}
	if opts != nil {
		n.o = *opts
	}
	n.o.Now, n.o.Logger, n.o.Summaries, n.o.TenantBy = g.o.Now, g.o.Logger, g.o.Summaries, g.o.TenantBy
	if err := n.init(); err != nil {
		return nil, err
	}
	n.routes()
	g.keeper.dropAll() // their keys, providers and limits may not be valid any more
	return n, nil
}

// Reloaded is the result of reloading the configuration.
type Reloaded struct {
	// File is the path of the configuration file, "" if there is none.
	File string `json:"file"`
	// Changed are the changed settings that apply from the next request on,
	// NeedRestart those that apply only after a restart of the gateway.
	Changed     []string `json:"changed"`
	NeedRestart []string `json:"need_restart"`
}

// reload serves POST /furl/v1/reload. It accepts requests from the loopback
// interface only, whatever their key.
func (g *Gateway) reload(r *http.Request) (*Reloaded, error) {
	if g.o.Reload == nil {
		return nil, &statusError{http.StatusNotImplemented, errors.New("this gateway cannot reload its configuration")}
	}
	if !fromLoopback(r) {
		return nil, &statusError{http.StatusForbidden, errors.New("reload is allowed only from the machine that the gateway runs on")}
	}
	done, err := g.o.Reload(context.WithoutCancel(r.Context()))
	if err != nil {
		return nil, &statusError{http.StatusUnprocessableEntity, err}
	}
	return done, nil
}

// fromLoopback reports whether a request comes from the loopback interface.
func fromLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
