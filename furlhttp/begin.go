package furlhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// query is a request to a model on its way.
type query struct {
	*http.Request
	api wire.API
	// count says that it asks for the size of its prompt: what is hidden is
	// hidden from it, and nothing is recorded.
	count bool
	reply *outlivingBody // the newest, nil without Options.Finish
}

// queryOf returns nil for a request that is not to a model, or that is to be
// left alone.
func (t *Transport) queryOf(r *http.Request) *query {
	if r.Method != http.MethodPost || r.Body == nil || r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	api, count := wire.ForPath(r.URL.Path)
	if api == nil {
		return nil
	}
	if header(r, HeaderBypass) {
		t.o.Hooks.passed(PassedBypass, nil)
		return nil
	}
	return &query{Request: r, api: api, count: count}
}

// header reports whether a header of a request is set to a true value.
func header(r *http.Request, name string) bool {
	on, _ := strconv.ParseBool(r.Header.Get(name))
	return on
}

// begin puts a request into its session. The exchange is nil if the request is
// to be sent unchanged: it cannot be decoded, or does not belong to the
// conversation. An error says that it must not be sent.
func (t *Transport) begin(q *query, body []byte) (x *exchange.Exchange, err error) {
	defer t.survive(&x)
	req, err := t.exchanges.Decode(q.api, body)
	if err != nil {
		// The provider can say better what is wrong with it.
		t.o.Hooks.passed(PassedUndecoded, err)
		return nil, nil
	}
	req.Model = cmp.Or(req.Model, deployment(q.URL.Path))
	if req.Ambiguous != "" {
		t.o.Logger.Warn("request sent unchanged and not recorded: a field is ambiguous", "path", upstream.Path(q.URL), "field", req.Ambiguous)
	}
	t.o.Hooks.decoded(req)
	h := t.o.Hints(q.Request, req)
	h.Session = cmp.Or(h.Session, t.o.Session)
	if !q.count && req.Ambiguous == "" && aside(req, h) {
		t.o.Hooks.passed(PassedAside, nil)
		return nil, nil
	}
	o := exchange.BeginOptions{Hints: h, Recall: exchange.KeepRecall, DryRun: t.o.DryRun || header(q.Request, HeaderDryRun), Peek: q.count}
	if t.o.Recall {
		o.Recall = exchange.OfferRecall
	}
	x, err = t.exchanges.Begin(q.Context(), req, o)
	switch {
	case err == nil:
		t.o.Hooks.begun(&x.Exchange)
		return x, nil
	case q.count:
		return nil, nil // its size can be counted all the same
	case q.Context().Err() != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrUnrecorded, err)
}

// deployment is the model in a path of Azure's: /deployments/MODEL/….
func deployment(path string) string {
	_, rest, ok := strings.Cut(path, "/deployments/")
	if !ok {
		return ""
	}
	model, _, _ := strings.Cut(rest, "/")
	return model
}

// aside reports whether a request does not belong to the conversation whose id
// it carries, such as one for a title: it has no tools and no message of the
// assistant. A chat without tools that begins like this is recorded from its
// second request on, which holds the first. A summary that the client asks for
// brings the history, and is a branch of the session: it would be too long, or
// have broken pairs, without what is hidden there.
func aside(req *protocol.Request, h protocol.Hints) bool {
	if h.Hint == "" || h.Session != "" {
		return false
	}
	for i := range req.Messages {
		if req.Messages[i].Role == furl.RoleAssistant {
			return false
		}
	}
	for i := range req.Preamble {
		if req.Preamble[i].Kind == furl.KindOpaque {
			return false
		}
	}
	return true
}

// survive is deferred around what furl does with a request before it is sent. A
// panic there has the request sent unchanged, like any failure of furl's own
// part. What is in memory may be half changed, so it is dropped and read again.
func (t *Transport) survive(x **exchange.Exchange) {
	if t.o.Hooks.Panicked == nil {
		return
	}
	if p := recover(); p != nil {
		*x = nil
		t.sessions.Drop()
		t.o.Hooks.Panicked(p)
	}
}
