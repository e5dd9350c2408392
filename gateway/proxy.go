package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// forwarding is what the reverse proxy is to do with one request.
type forwarding struct {
	transport http.RoundTripper
	body      []byte // of the request; nil: that of the request itself
	// answered, if not nil, is called with the answer before it is passed on,
	// failed with the error if there is none.
	answered func(*http.Response)
	failed   func(http.ResponseWriter, error)
	// cut is called with the error that cut an answer off. It returns what ends
	// a stream then.
	cut func(error) []byte

	ctx    context.Context // of the request, before the proxy changed it
	client *noted
}

type forwardKey struct{}

func forwardingOf(ctx context.Context) *forwarding { return ctx.Value(forwardKey{}).(*forwarding) }

// newProxy returns the reverse proxy that all requests to providers go through.
func (g *Gateway) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // byte for byte
			if f := forwardingOf(r.In.Context()); f.body != nil {
				r.Out.Body = &requestBody{bytes.NewReader(f.body), f.body}
				r.Out.GetBody = func() (io.ReadCloser, error) { return &requestBody{bytes.NewReader(f.body), f.body}, nil }
			}
		},
		Transport:  roundTripper(func(r *http.Request) (*http.Response, error) { return forwardingOf(r.Context()).roundTrip(r) }),
		BufferPool: buffers{},
		ModifyResponse: func(resp *http.Response) error {
			f := forwardingOf(resp.Request.Context())
			if f.answered != nil {
				f.answered(resp)
			}
			resp.Body = &cutBody{ReadCloser: resp.Body, f: f, stream: wire.IsStream(resp.Header.Get("Content-Type"))}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { forwardingOf(r.Context()).failed(w, err) },
		ErrorLog:     log.New(io.Discard, "", 0), // what it says may hold what was sent
	}
}

// forward sends a request to its provider, and the answer to the client.
func (g *Gateway) forward(w *noted, r *http.Request, f *forwarding) {
	f.ctx, f.client = r.Context(), w
	w.stall = g.o.Stall
	// A body that is passed on may still be read while the answer is written.
	_ = w.control().EnableFullDuplex() // not every writer can
	// Without a type of the provider's, the server would guess one.
	w.Header()["Content-Type"] = nil
	g.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardKey{}, f)))
	_ = w.control().SetWriteDeadline(time.Time{})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip sends a request without the proxy's trace, by which interim
// responses of the provider would reach the client, and clear the header of its
// answer.
func (f *forwarding) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.transport.RoundTrip(r.WithContext(f.ctx))
	if err == nil {
		resp.Request = r
	}
	return resp, err
}

// buffers are those by which answers are copied.
type buffers struct{}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte  { return bufferPool.Get().(*[32 << 10]byte)[:] }
func (buffers) Put(b []byte) { bufferPool.Put((*[32 << 10]byte)(b)) }

// cutBody is the body of an answer. If it is cut off, a stream ends with an error
// event, because a stream that just ends looks complete to some clients. Of any
// other answer, the client gets what arrived, and then its connection is cut.
type cutBody struct {
	io.ReadCloser
	f      *forwarding
	stream bool
	last   *bytes.Reader // nil: the body was not cut off
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.last != nil {
		return b.last.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF || clientGone(b.f.ctx, err) {
		return n, err
	}
	event := b.f.cut(err)
	if !b.stream {
		_ = b.f.client.control().Flush()
		return n, err
	}
	b.last = bytes.NewReader(event)
	return n, nil
}

// clientGone reports whether an error came about because the client left.
func clientGone(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, upstream.ErrClientGone))
}

// cutOff notes that an answer was cut off, and returns the event that tells the
// client of it.
func (g *Gateway) cutOff(r *http.Request, rt *route, err error) []byte {
	g.metrics.cut.Inc()
	g.log.Warn("an answer was cut off", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	refusal := &protocol.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider's answer was cut off"}
	if own := ownRefusal(err); own != nil {
		refusal = own
	}
	return wire.ErrorEvent(rt.codec, refusal)
}

// ownRefusal is how the client is told of an error of furlhttp, nil if it is
// another's.
func ownRefusal(err error) *protocol.Refusal {
	if e, ok := errors.AsType[*furlhttp.RefusedError](err); ok {
		return e.Refusal
	}
	switch {
	case errors.Is(err, furlhttp.ErrRecall):
		return &protocol.Refusal{Status: http.StatusInternalServerError, Message: "furl: " + furlhttp.ErrRecall.Error()}
	case errors.Is(err, furlhttp.ErrUnrecorded):
		return &protocol.Refusal{Status: http.StatusServiceUnavailable, Message: "furl: recording failed; request refused (gateway.refuse is set)"}
	}
	return nil
}

// refuse answers in the shape of the provider's own errors.
func (g *Gateway) refuse(w http.ResponseWriter, rt *route, r *protocol.Refusal) {
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

// fail answers a request that has no answer.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, rt *route, err error) {
	if clientGone(r.Context(), err) {
		return
	}
	if own := ownRefusal(err); own != nil {
		g.refuse(w, rt, own)
		return
	}
	g.metrics.failed.Inc()
	g.log.Warn("the provider could not be reached", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	refusal := &protocol.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider could not be reached"}
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		refusal = e.Refusal()
	}
	g.refuse(w, rt, refusal)
}

// noted is an answer whose status is noted, and that is given up when the client
// does not take it.
type noted struct {
	http.ResponseWriter
	status int
	stall  time.Duration // how long the client may take for a piece; 0: for ever
	rc     *http.ResponseController
}

// control is what controls the client's connection. Not every writer can do what
// it offers.
func (n *noted) control() *http.ResponseController {
	if n.rc == nil {
		n.rc = http.NewResponseController(n.ResponseWriter)
	}
	return n.rc
}

// WriteHeader notes the status.
func (n *noted) WriteHeader(status int) {
	if n.status < 200 { // it may be preceded by informational ones
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	if n.status < 200 {
		n.status = http.StatusOK
	}
	if n.stall > 0 {
		_ = n.control().SetWriteDeadline(time.Now().Add(n.stall))
	}
	return n.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }
