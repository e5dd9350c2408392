package furlhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/internal/exchange"
)

// exchange sends an exchange and returns the reply that the caller reads.
func (t *Transport) exchange(q *query, x *exchange.Exchange) (*http.Response, error) {
	resp, err := t.send(q, x)
	t.o.Hooks.sent(&x.Exchange, err)
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if strings.HasPrefix(name, ownHeaders) {
			delete(resp.Header, name) // only furl says what furl did
		}
	}
	Describe(resp.Header, &x.Exchange, q.Header.Get(HeaderSession))
	switch {
	case x.Session == nil || q.count:
		x.Drop()
		return resp, nil
	case x.Offered() && resp.StatusCode < 300 && !encoded(resp):
		return t.recall(q, x, resp)
	}
	resp.Body = t.observe(q, x, resp)
	return resp, nil
}

// send sends the body of an exchange. What the request brought is committed when
// the provider has accepted it, before the caller gets any of the reply: a
// request that is refused, or does not reach its provider, leaves nothing in the
// session. A prompt that was too long is sent again, shorter, and so is one that
// another request of the session has made wrong meanwhile; the reply to return is
// the first one that is right.
func (t *Transport) send(q *query, x *exchange.Exchange) (*http.Response, error) {
	for {
		resp, err := t.roundTrip(q, x)
		if err == nil && !q.count {
			resp, err = t.recoverOverflow(q, x, resp)
		}
		if err != nil || resp.StatusCode >= 300 {
			x.Drop()
			return resp, err
		}
		resend, err := x.Commit(q.Context())
		if err == nil && !resend {
			return resp, nil
		}
		_ = resp.Body.Close() // this reply is discarded
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnrecorded, err)
		}
	}
}

// roundTrip sends the body of an exchange once.
func (t *Transport) roundTrip(q *query, x *exchange.Exchange) (*http.Response, error) {
	out := withBody(q.Request, x.Body)
	if x.Session == nil || q.count {
		return t.o.Base.RoundTrip(out)
	}
	out.Header.Set("Accept-Encoding", "identity") // furl has to read the reply
	send := t.o.Base.RoundTrip
	if t.o.Finish > 0 {
		send = func(r *http.Request) (*http.Response, error) { return t.outliving(q, r) }
	}
	resp, err := send(out)
	if err == nil {
		decompress(resp)
	}
	return resp, err
}

// outliving sends a request that outlives its context by Options.Finish, once it
// has a reply.
func (t *Transport) outliving(q *query, r *http.Request) (*http.Response, error) {
	caller := r.Context()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	detach := context.AfterFunc(caller, func() { cancel(context.Cause(caller)) })
	resp, err := t.o.Base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		detach()
		cancel(nil)
		return nil, err
	}
	b := &outlivingBody{ReadCloser: resp.Body, cancel: cancel, finish: t.o.Finish, detach: detach}
	if detach() {
		b.detach = context.AfterFunc(caller, b.leave)
	}
	resp.Body, q.reply = b, b
	return resp, nil
}

// leave says that the caller has left the newest reply.
func (q *query) leave() {
	if q.reply != nil {
		q.reply.leave()
	}
}

// outlivingBody is a body that can be read for some time after its caller has
// left.
type outlivingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	finish time.Duration
	detach func() bool

	mu     sync.Mutex
	timer  *time.Timer // since the caller has left
	closed bool
}

// leave says that the caller has left.
func (b *outlivingBody) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(b.finish, func() { b.cancel(context.Canceled) })
	}
}

// Close ends the request.
func (b *outlivingBody) Close() error {
	b.detach()
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
