package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/upstream"
)

// refuse answers in the shape of the provider's own errors.
func (g *Gateway) refuse(w http.ResponseWriter, rt *route, r *furl.Refusal) {
	g.metrics.refused.Inc()
	if r.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if rt.foreign != nil {
		rt.foreign.write(w, r)
		return
	}
	_ = upstream.WriteError(w, rt.codec, r, "") // the client has gone if not
}

// fail answers a request that did not reach its provider.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, rt *route, err error) {
	if r.Context().Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, upstream.ErrClientGone)) {
		return // the client has left
	}
	g.metrics.failed.Inc()
	g.log.Warn("the provider could not be reached", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	refusal := &furl.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider could not be reached"}
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		refusal = e.Refusal()
	}
	g.refuse(w, rt, refusal)
}
