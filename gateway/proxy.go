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

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// forwarding holds the parameters of the reverse proxy for one request.
type forwarding struct {
	transport http.RoundTripper
	// responseStarted is called with the response before it is
	// forwarded; failed with the error if there is no response.
	responseStarted func(*http.Response)
	failed          func(http.ResponseWriter, error)
	// cutOff is called with the error that cut a response off. It returns the error
	// event that ends a stream.
	cutOff func(error) []byte

	ctx    context.Context // of the client's request
	client *statusWriter
}

type forwardKey struct{}

func forwardingOf(ctx context.Context) *forwarding { return ctx.Value(forwardKey{}).(*forwarding) }

// newProxy returns the reverse proxy for all requests to providers.
func (g *Gateway) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // byte for byte
		},
		Transport:  roundTripper(func(r *http.Request) (*http.Response, error) { return forwardingOf(r.Context()).roundTrip(r) }),
		BufferPool: buffers{},
		ModifyResponse: func(resp *http.Response) error {
			f := forwardingOf(resp.Request.Context())
			f.responseStarted(resp)
			resp.Body = &cutBody{ReadCloser: resp.Body, ctx: f.ctx, client: f.client, stream: wire.IsStream(resp.Header.Get("Content-Type")), cutOff: f.cutOff}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { forwardingOf(r.Context()).failed(w, err) },
		ErrorLog:     log.New(io.Discard, "", 0), // its messages may contain request content
	}
}

// forward sends a request to its provider, and the response to the client.
func (g *Gateway) forward(w *statusWriter, r *http.Request, f *forwarding) {
	f.ctx, f.client = r.Context(), w
	g.prepare(w)
	g.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardKey{}, f)))
	_ = w.control().SetWriteDeadline(time.Time{})
}

// prepare prepares a client's connection for a provider's response.
func (g *Gateway) prepare(w *statusWriter) {
	w.stall = g.o.Stall
	// A forwarded body may still be read while the response is written.
	_ = w.control().EnableFullDuplex() // not every writer supports it
	// If the provider sends no Content-Type, the server must not guess one.
	w.Header()["Content-Type"] = nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip sends a request without the proxy's httptrace.ClientTrace, which would
// forward the provider's 1xx responses and clear the response header.
func (f *forwarding) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.transport.RoundTrip(r.WithContext(f.ctx))
	if err == nil {
		resp.Request = r
	}
	return resp, err
}

// piece is a buffer for a part of a body.
type piece [32 << 10]byte

var bufferPool = sync.Pool{New: func() any { return new(piece) }}

// buffers is the proxy's buffer pool for copying responses.
type buffers struct{}

func (buffers) Get() []byte  { return bufferPool.Get().(*piece)[:] }
func (buffers) Put(b []byte) { bufferPool.Put((*piece)(b)) }

// cutBody is the body of a response. If a stream is cut off, it ends with an error
// event, because some clients take a stream that just ends for complete. Any other
// response ends with what has arrived, and the client's connection is closed.
type cutBody struct {
	io.ReadCloser
	ctx        context.Context // of the client's request
	client     *statusWriter
	cutOff     func(error) []byte // returns the event that ends a stream
	stream     bool
	errorEvent *bytes.Reader // nil: the body was not cut off
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.errorEvent != nil {
		return b.errorEvent.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF || clientGone(b.ctx, err) {
		return n, err
	}
	event := b.cutOff(err)
	if !b.stream {
		_ = b.client.control().Flush()
		return n, err
	}
	b.errorEvent = bytes.NewReader(event)
	return n, nil
}

// clientGone reports whether an error is due to the client's disconnect.
func clientGone(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, upstream.ErrClientGone))
}

// cutOff logs and counts a response that was cut off, and returns the error event
// for the client.
func (g *Gateway) cutOff(r *http.Request, rt *route, err error) []byte {
	g.metrics.cut.Inc()
	g.log.Warn("provider's response was cut off", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	refusal := &protocol.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider's response was cut off"}
	if own := ownRefusal(err); own != nil {
		refusal = own
	}
	return wire.ErrorEvent(rt.codec, refusal)
}

// ownRefusal returns the refusal for an error of an exchange, nil for other errors.
func ownRefusal(err error) *protocol.Refusal {
	if e, ok := errors.AsType[*protocol.Refusal](err); ok {
		return e
	}
	switch {
	case errors.Is(err, exchange.ErrRecall):
		return &protocol.Refusal{Status: http.StatusInternalServerError, Message: "furl: " + exchange.ErrRecall.Error()}
	case errors.Is(err, exchange.ErrUnrecorded):
		return &protocol.Refusal{Status: http.StatusServiceUnavailable, Message: "furl: recording failed; request refused (gateway.refuse is set)"}
	}
	return nil
}

// refuse writes a refusal in the error format of the provider.
func (g *Gateway) refuse(w http.ResponseWriter, rt *route, r *protocol.Refusal) {
	g.metrics.refused.Inc()
	if r.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if rt.foreign != nil {
		rt.foreign.write(w, r)
		return
	}
	_ = upstream.WriteError(w, rt.codec, r, "") // fails only if the client has disconnected
}

// fail writes the response for a request to which the provider sent none.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, rt *route, err error) {
	if clientGone(r.Context(), err) {
		return
	}
	if own := ownRefusal(err); own != nil {
		g.refuse(w, rt, own)
		return
	}
	g.metrics.failed.Inc()
	g.log.Warn("request to provider failed", "path", upstream.Path(r.URL), "error", upstream.Text(err))
	refusal := &protocol.Refusal{Status: http.StatusBadGateway, Message: "furl: the provider could not be reached"}
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		refusal = e.Refusal()
	}
	g.refuse(w, rt, refusal)
}

// statusWriter is a ResponseWriter that records the status, and times out when
// the client does not accept data.
type statusWriter struct {
	http.ResponseWriter
	status  int
	written int64         // bytes of the body
	stall   time.Duration // timeout of a write; 0: none
	rc      *http.ResponseController
}

// control returns the ResponseController of the client's connection. Not every
// writer supports all its methods.
func (n *statusWriter) control() *http.ResponseController {
	if n.rc == nil {
		n.rc = http.NewResponseController(n.ResponseWriter)
	}
	return n.rc
}

// WriteHeader records the status.
func (n *statusWriter) WriteHeader(status int) {
	if n.status < 200 { // informational responses may precede it
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *statusWriter) Write(p []byte) (int, error) {
	if n.status < 200 {
		n.status = http.StatusOK
	}
	if n.stall > 0 {
		_ = n.control().SetWriteDeadline(time.Now().Add(n.stall))
	}
	written, err := n.ResponseWriter.Write(p)
	n.written += int64(written)
	return written, err
}

// Unwrap supports http.ResponseController.
func (n *statusWriter) Unwrap() http.ResponseWriter { return n.ResponseWriter }
