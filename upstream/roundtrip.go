package upstream

import (
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

// retryPause is the time between two attempts to connect.
const retryPause = 200 * time.Millisecond

// RoundTrip implements http.RoundTripper. It uses the path and the query of the
// request's URL and appends them to the base URL. The error is an [*Error]; so is the
// error of a body that is cut off.
//
// If connecting fails, it retries up to Options.Retries times, provided that the body
// can be read again (http.Request.GetBody).
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	target, err := c.target(r.URL)
	if err != nil {
		closeBody(r)
		return nil, c.fail(StageRequest, err, nil)
	}
	began := time.Now()
	for attempt := 0; ; attempt++ {
		resp, err := c.send(r, target, attempt)
		if err == nil {
			return resp, nil
		}
		again := attempt < c.opts.Retries && neverConnected(err) && repeatable(r)
		c.log.DebugContext(r.Context(), "upstream failed", "host", c.base.Host, "method", r.Method, "path", Path(r.URL),
			"stage", string(err.Stage), "error", Text(err.Err), "after", time.Since(began), "again", again)
		if !again || !pause(r.Context()) {
			return nil, err
		}
	}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// repeatable reports whether the body of a request can be read again.
func repeatable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// neverConnected reports whether connecting failed. Only a failed dial proves that
// nothing was sent.
func neverConnected(err *Error) bool {
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

// send makes one attempt.
func (c *Client) send(r *http.Request, target *url.URL, attempt int) (*http.Response, *Error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	clock := &clock{cancel: cancel, began: time.Now()}
	clock.limit(c.opts.Connect, ErrConnectTimeout)
	failed := func(stage Stage, err error) *Error {
		e := c.fail(stage, err, context.Cause(ctx))
		clock.stop()
		cancel(nil)
		return e
	}
	out, err := c.outgoing(r, target, attempt)
	if err != nil {
		closeBody(r)
		return nil, failed(StageRequest, err)
	}
	resp, err := c.opts.Transport.RoundTrip(out.WithContext(httptrace.WithClientTrace(ctx, clock.trace(c.opts.FirstByte))))
	if err == nil {
		if err = checkStatus(resp.StatusCode); err != nil {
			_ = resp.Body.Close()
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
	firstByte, connect := clock.times()
	c.log.DebugContext(ctx, "upstream answered", "host", c.base.Host, "method", r.Method, "path", Path(r.URL),
		"status", resp.StatusCode, "connect", connect, "first_byte", firstByte)
	resp.Header = incoming(resp.Header)
	resp.Request = r
	resp.Body = c.limited(resp, ctx, cancel)
	return resp, nil
}

// outgoing returns the request to send to target in place of r.
func (c *Client) outgoing(r *http.Request, target *url.URL, attempt int) (*http.Request, error) {
	out := new(http.Request)
	*out = *r
	out.URL, out.Host = target, c.base.Host
	out.Header = c.outgoingHeader(r.Header)
	out.RequestURI, out.Close, out.TransferEncoding, out.Trailer = "", false, nil, nil
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		closeBody(r)
		out.Body, out.ContentLength = http.NoBody, 0
	case attempt > 0:
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	case r.GetBody == nil && r.ContentLength > 0:
		// http.Transport reads once more at the end of a body, when a server
		// may already have closed the body of its request. An error from that
		// read would fail the whole request.
		out.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, r.ContentLength), r.Body}
	}
	return out, nil
}

// checkStatus returns an error for a status that furl cannot pass on to a client.
func checkStatus(status int) error {
	switch {
	case status == http.StatusSwitchingProtocols:
		return errors.New("the provider switched protocols without a request to do so")
	case status < 100: // http.ResponseWriter panics
		return fmt.Errorf("the provider responded with status %03d", status)
	}
	return nil
}

// trace updates the clock's limit for each stage. Sending the request may take as
// long as the response.
func (k *clock) trace(answer time.Duration) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			k.connected()
			k.limit(answer, ErrAnswerTimeout)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { k.limit(answer, ErrAnswerTimeout) },
	}
}

// clock cancels a request that takes too long for its stage.
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

// times returns the time so far and the time until the connection, 0 if there is
// none.
func (k *clock) times() (sofar, connect time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.began), k.connect
}
