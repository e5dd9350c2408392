package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// Request is a request on its way to the provider.
type Request struct {
	Method string
	// URL is as the client asked; path and query of it count.
	URL *url.URL
	// Header is the client's, and is not changed. If Body was decoded or
	// replaced, its Content-Encoding must be gone.
	Header http.Header
	// Body is the whole body. It must not be changed until the answer is
	// there.
	Body []byte
	// Stream is the body of a request that is passed on without being read,
	// used if Body is nil; Length is its length, -1 if unknown.
	Stream io.Reader
	Length int64
	// Understand asks for an answer that furl can read: no encoding is asked
	// for, and gzip, should it come, is decoded.
	Understand bool
}

// retryPause is the time between two tries for a connection.
const retryPause = 200 * time.Millisecond

// Do sends a request and returns when the header of the answer is there. ctx
// is the client's: when it ends before that, so does the request; after that,
// see Options.Finish. The error is an [*Error]. The Response must be closed.
func (c *Client) Do(ctx context.Context, req *Request) (*Response, error) {
	target, err := c.target(req.URL)
	if err != nil {
		return nil, c.fail(StageRequest, err, nil)
	}
	began := time.Now()
	for try := 0; ; try++ {
		resp, err := c.send(ctx, req, target)
		if err == nil {
			c.log.DebugContext(ctx, "upstream answered", "host", c.base.Host, "method", req.Method, "path", Path(req.URL),
				"status", resp.Status, "connect", resp.Connect, "first_byte", resp.FirstByte)
			return resp, nil
		}
		again := try < c.opts.Retries && unsent(err) && (req.Body != nil || req.Stream == nil)
		c.log.DebugContext(ctx, "upstream failed", "host", c.base.Host, "method", req.Method, "path", Path(req.URL),
			"stage", string(err.Stage), "error", Text(err.Err), "after", time.Since(began), "again", again)
		if !again || !pause(ctx) {
			return nil, err
		}
	}
}

// unsent reports whether no connection came about, which nothing but a failed
// dial proves.
func unsent(err *Error) bool {
	var op *net.OpError
	return !err.Timeout && errors.As(err.Err, &op) && op.Op == "dial"
}

func pause(ctx context.Context) bool {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Client) send(ctx context.Context, req *Request, target *url.URL) (*Response, *Error) {
	// The answer may outlive the client, see Options.Finish.
	up, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stay := context.AfterFunc(ctx, func() { cancel(ErrClientGone) })
	clock := &clock{cancel: cancel, began: time.Now()}
	clock.limit(c.opts.Connect, ErrConnectTimeout)
	failed := func(stage Stage, err error) *Error {
		e := c.fail(stage, err, context.Cause(up))
		clock.stop()
		stay()
		cancel(nil)
		return e
	}
	out, err := http.NewRequestWithContext(httptrace.WithClientTrace(up, clock.trace(c.opts.FirstByte)), req.Method, target.String(), nil)
	if err != nil {
		return nil, failed(StageRequest, err)
	}
	out.URL = target // String and Parse may write a path in another way
	out.Host = c.base.Host
	out.Header = outgoing(req.Header, c.base.Host, req.Understand)
	setBody(out, req)
	in, err := c.opts.Transport.RoundTrip(out)
	if err == nil {
		if err = unanswerable(in.StatusCode); err != nil {
			in.Body.Close()
		}
	}
	if err != nil {
		stage := StageAnswer
		if _, connected := clock.times(); connected == 0 {
			stage = StageConnect
		}
		return nil, failed(stage, err)
	}
	clock.stop()
	resp := c.response(in, req, up, cancel)
	resp.FirstByte, resp.Connect = clock.times()
	c.follow(ctx, resp, stay)
	return resp, nil
}

// unanswerable says why an answer with a status cannot be passed on, nil if it
// can.
func unanswerable(status int) error {
	switch {
	case status == http.StatusSwitchingProtocols:
		return errors.New("it switched protocols unasked")
	case status < 100: // a server may not say that, and panics
		return fmt.Errorf("it answered with status %03d", status)
	}
	return nil
}

// follow arranges for the answer to end some time after the client has gone,
// and after all the time there is.
func (c *Client) follow(ctx context.Context, resp *Response, stay func() bool) {
	if c.opts.Finish > 0 && stay() {
		stay = context.AfterFunc(ctx, func() { resp.endAfter(c.opts.Finish, ErrClientGone) })
	}
	resp.stay = stay
	if c.opts.Total > 0 {
		resp.endAfter(c.opts.Total, ErrTotal)
	}
}

func setBody(out *http.Request, req *Request) {
	switch {
	case len(req.Body) > 0:
		out.ContentLength = int64(len(req.Body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(req.Body)), nil }
		out.Body, _ = out.GetBody()
	case req.Body == nil && req.Stream != nil && req.Length != 0:
		out.ContentLength = req.Length
		stream := req.Stream
		if req.Length > 0 {
			// The transport looks for more behind the end, when a server may
			// have closed its request's body already, and gives the whole
			// request up if it finds an error there.
			stream = io.LimitReader(stream, req.Length)
		}
		out.Body = io.NopCloser(stream)
	default:
		out.Body = http.NoBody
	}
}

// trace tells the clock how far the request has come. Sending the request may
// take as long as the answer.
func (k *clock) trace(answer time.Duration) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			k.connected()
			k.limit(answer, ErrAnswerTimeout)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { k.limit(answer, ErrAnswerTimeout) },
	}
}

// clock ends a request that takes too long for its stage.
type clock struct {
	mu      sync.Mutex
	cancel  context.CancelCauseFunc
	began   time.Time
	connect time.Duration
	timer   *time.Timer
	stopped bool
}

func (k *clock) limit(d time.Duration, cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
	if !k.stopped {
		k.timer = time.AfterFunc(d, func() { k.cancel(cause) })
	}
}

func (k *clock) connected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.connect = max(time.Since(k.began), 1) // 0 means never
}

func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.timer.Stop()
}

// times are the time so far and the time to the connection, 0 if there is none.
func (k *clock) times() (sofar, connect time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.began), k.connect
}
