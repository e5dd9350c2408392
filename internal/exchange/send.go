package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrUnrecorded is wrapped by the error of a request that could not be recorded although
// session.Options.Refuse is set.
var ErrUnrecorded = errors.New("recording failed")

// SendOptions say how the body of an exchange is sent.
type SendOptions struct {
	// Post sends a body to the provider once. ctx is that of the request, or one that
	// lives longer, see Finish. If Exchange.Reads returns true, the request must not ask
	// for a compressed reply.
	Post func(ctx context.Context, body []byte) (*http.Response, error)
	// Finish is how long furl keeps reading a reply, to record it, after the caller has
	// closed it or cancelled the request. If zero, the request is cancelled at once, and
	// the part that has arrived is recorded.
	Finish time.Duration
	// Later leaves the end of decoding and recording to Exchange.Finish, which the caller
	// calls after it has closed the reply. If false, the reply is recorded before the
	// caller reads its end, so that its next request finds it recorded; only what Finish
	// reads after the caller has closed the reply is recorded on another goroutine.
	Later bool
	// Ended, if not nil, is called once the last reply is recorded, with Replies set.
	Ended func(*Exchange)
}

// sending is the state of an exchange that is being sent.
type sending struct {
	SendOptions
	ctx       context.Context // of the client's request
	replyBody *outlivingBody  // of the latest reply; nil without Finish
	reading   interface{ finish() }
	// Replies are the provider's replies that were recorded.
	Replies []Reply
}

// Reads reports whether furl reads the reply.
func (x *Exchange) Reads() bool { return x.Session != nil && !x.count }

// Send sends the body of an exchange. The new records are committed when the
// provider has accepted the request, before the caller reads the reply. So a
// request that is refused, or does not reach the provider, leaves no records. A
// prompt that was too long is shortened and sent again, one whose thinking was refused
// is sent again without thinking. A prompt that has become
// outdated, because another request changed the session meanwhile, is also sent
// again.
func (x *Exchange) Send(ctx context.Context, o SendOptions) (*http.Response, error) {
	x.SendOptions, x.ctx = o, ctx
	return x.send(ctx)
}

func (x *Exchange) send(ctx context.Context) (*http.Response, error) {
	for {
		resp, err := x.post(ctx)
		if err == nil && x.Reads() {
			if resp, err = x.recoverHourCache(ctx, resp); err == nil {
				resp, err = x.recoverRefusal(ctx, resp)
			}
		}
		if err != nil || resp.StatusCode >= 300 {
			x.Drop()
			return resp, err
		}
		resend, err := x.Commit(ctx)
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
func (x *Exchange) recoverHourCache(ctx context.Context, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusBadRequest || refusedPrompt(x.api, resp) != nil || !x.withoutHourCache() {
		return resp, nil
	}
	_ = resp.Body.Close()
	resp, err := x.post(ctx)
	if err == nil && resp.StatusCode < 300 {
		x.hourCacheRefused()
	}
	return resp, err
}

// post sends the body of an exchange once.
func (x *Exchange) post(ctx context.Context) (*http.Response, error) {
	if !x.Reads() {
		return x.Post(ctx, x.Body)
	}
	if x.draft != nil {
		x.draft.Stage(ctx)
	}
	post := x.Post
	if x.SendOptions.Finish > 0 {
		post = x.outliving
	}
	resp, err := post(ctx, x.Body)
	if err == nil {
		decompress(resp)
	}
	return resp, err
}

// outliving sends a body whose reply can be read for SendOptions.Finish after the end of
// the request's context.
func (x *Exchange) outliving(caller context.Context, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	detach := context.AfterFunc(caller, func() { cancel(context.Cause(caller)) })
	resp, err := x.Post(ctx, body)
	if err != nil {
		detach()
		cancel(nil)
		return nil, err
	}
	b := &outlivingBody{ReadCloser: resp.Body, cancel: cancel, finish: x.SendOptions.Finish, detach: detach}
	if detach() {
		b.detach = context.AfterFunc(caller, b.startTimeout)
	}
	resp.Body, x.replyBody = b, b
	return resp, nil
}

// startTimeout starts the timeout of the latest reply, because the caller has closed it.
func (x *Exchange) startTimeout() {
	if x.replyBody != nil {
		x.replyBody.startTimeout()
	}
}

// Relay returns the response of Send for the client, whose reply is recorded while it is
// read. Calls of recall tools are removed from it and answered.
func (x *Exchange) Relay(resp *http.Response) (*http.Response, error) {
	switch {
	case !x.Reads():
		x.Drop()
		return resp, nil
	case x.Offered() && resp.StatusCode < 300 && !hasEncoding(resp):
		return x.joinReplies(resp)
	}
	b := newRecordedBody(x, resp)
	x.reading, resp.Body = b, b
	return resp, nil
}

// Finish decodes the rest of the last reply and records it. It is for SendOptions.Later,
// after the reply was closed.
func (x *Exchange) Finish() {
	if x.reading != nil {
		x.reading.finish()
	}
}

// ended drops the exchange and reports its end.
func (x *Exchange) ended() {
	x.Drop()
	if x.Ended != nil {
		x.Ended(x)
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
