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

// exchange sends the request of an exchange and returns the response for the
// caller.
func (t *Transport) exchange(q *modelRequest, x *exchange.Exchange) (*http.Response, error) {
	resp, err := t.send(q, x)
	t.o.Hooks.sent(&x.Exchange, err)
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(resp.Header, name) // only furl says what furl did
		}
	}
	Describe(resp.Header, &x.Exchange, q.Header.Get(HeaderSession))
	switch {
	case x.Session == nil || q.count:
		x.Drop()
		return resp, nil
	case x.Offered() && resp.StatusCode < 300 && !hasEncoding(resp):
		return t.recall(q, x, resp)
	}
	resp.Body = t.recordBody(q, x, resp)
	return resp, nil
}

// send sends the body of an exchange. The new records are committed when the
// provider has accepted the request, before the caller reads the reply. So a
// request that is refused, or does not reach the provider, leaves no records. A
// prompt that was too long is shortened and sent again, one whose thinking was refused
// is sent again without thinking. A prompt that has become
// outdated, because another request changed the session meanwhile, is also sent
// again.
func (t *Transport) send(q *modelRequest, x *exchange.Exchange) (*http.Response, error) {
	for {
		resp, err := t.roundTrip(q, x)
		if err == nil && !q.count {
			if resp, err = t.recoverHourCache(q, x, resp); err == nil {
				resp, err = t.recoverRefusal(q, x, resp)
			}
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

// recoverHourCache sends a refused request again without cache entries of one hour, if
// furl has asked for them: not every server of the API knows them.
func (t *Transport) recoverHourCache(q *modelRequest, x *exchange.Exchange, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusBadRequest || refusedPrompt(q.api, resp) != nil || !x.WithoutHourCache() {
		return resp, nil
	}
	_ = resp.Body.Close()
	resp, err := t.roundTrip(q, x)
	if err == nil && resp.StatusCode < 300 {
		x.HourCacheRefused()
	}
	return resp, err
}

// roundTrip sends the body of an exchange once.
func (t *Transport) roundTrip(q *modelRequest, x *exchange.Exchange) (*http.Response, error) {
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

// outliving sends a request whose reply can be read for Options.Finish after the
// end of the request's context.
func (t *Transport) outliving(q *modelRequest, r *http.Request) (*http.Response, error) {
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
		b.detach = context.AfterFunc(caller, b.startTimeout)
	}
	resp.Body, q.replyBody = b, b
	return resp, nil
}

// startTimeout starts the timeout of the latest reply, because the caller has
// closed it.
func (q *modelRequest) startTimeout() {
	if q.replyBody != nil {
		q.replyBody.startTimeout()
	}
}

// outlivingBody is a body that can be read for some time after the caller has
// closed it.
type outlivingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	finish time.Duration
	detach func() bool

	mu     sync.Mutex
	timer  *time.Timer // started when the caller closes the body
	closed bool
}

// startTimeout starts the timeout.
func (b *outlivingBody) startTimeout() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(b.finish, func() { b.cancel(context.Canceled) })
	}
}

// Close closes the body and cancels the request.
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
