package furlhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/onereply"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// ErrRecall is wrapped by the error of a reply that cannot be continued after the
// model has called a recall tool.
var ErrRecall = errors.New("the model's call of a memory tool could not be answered")

// errClosed is the error of a body that is read after it was closed.
var errClosed = errors.New("the body was closed")

// recalling is the body of the reply to a request with recall tools. Calls of
// these are held back and answered, and the reply to the next request continues
// where this one stopped: the caller reads one reply.
type recalling struct {
	t       *Transport
	q       *query // with a context that ends when the body is closed
	cancel  context.CancelFunc
	x       *exchange.Exchange
	m       *onereply.Merger
	piece   []byte
	reading sync.Mutex // held while a reply is read: one reader at a time

	mu      sync.Mutex // a body may be closed while it is read
	out     outBuffer  // what the caller reads next
	err     error      // after that; nil: there is more
	closed  bool
	body    io.ReadCloser
	reply   *wire.ReplyReader // of the reply at hand; nil: it is recorded
	round   http.ResponseWriter
	refused *http.Response // returned in place of what follows a recall
}

// recall returns the reply to a request with recall tools, of which resp is the
// beginning. A reply that is not a stream is complete by then.
func (t *Transport) recall(q *query, x *exchange.Exchange, resp *http.Response) (*http.Response, error) {
	b := &recalling{t: t, x: x, piece: make([]byte, 32<<10)}
	own := *q
	ctx, cancel := context.WithCancel(q.Context())
	own.Request = q.WithContext(ctx)
	b.q, b.cancel = &own, cancel
	b.out.header = resp.Header.Clone()
	stream := wire.IsStream(resp.Header.Get("Content-Type"))
	b.m = onereply.New(&b.out, q.api, stream, x.IsRecall)
	b.begin(resp)
	if !stream {
		b.fill()
		switch {
		case b.refused != nil:
			b.refused.Body = &joined{b.refused.Body, closers{b.refused.Body, b}}
			return b.refused, nil
		case b.out.Len() == 0 && b.err != nil && b.err != io.EOF:
			err := b.err
			_ = b.Close()
			return nil, err
		}
	}
	out := *resp
	out.Header, out.Body, out.ContentLength = b.out.header, b, -1
	if n, err := strconv.ParseInt(out.Header.Get("Content-Length"), 10, 64); err == nil && !stream {
		out.ContentLength = n
	} else {
		out.Header.Del("Content-Length")
	}
	return &out, nil
}

// begin takes the next reply.
func (b *recalling) begin(resp *http.Response) {
	b.body, b.round = resp.Body, b.m.Round()
	b.reply = wire.NewReplyReader(b.q.api, resp.StatusCode, resp.Header.Get("Content-Type"))
	b.round.WriteHeader(resp.StatusCode)
}

// Read returns what has arrived of the reply, and continues after calls of
// recall tools.
func (b *recalling) Read(p []byte) (int, error) {
	b.fill()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.out.Len() > 0 {
		return b.out.Read(p)
	}
	if b.closed {
		return 0, errClosed
	}
	return 0, b.err
}

// fill reads until there is something for the caller, or the end.
func (b *recalling) fill() {
	b.reading.Lock()
	defer b.reading.Unlock()
	for {
		b.mu.Lock()
		ready := b.out.Len() > 0 || b.err != nil || b.closed
		b.mu.Unlock()
		if ready {
			return
		}
		b.advance()
	}
}

// advance reads one piece of the reply at hand, or sends the next request. b is
// locked for reading.
func (b *recalling) advance() {
	n, err := b.body.Read(b.piece)
	b.mu.Lock()
	again := b.err == nil && b.took(b.piece[:n], err)
	b.mu.Unlock()
	if again {
		b.next()
	}
}

// took takes a piece of a reply, and the error after it. It reports whether that
// was the end and there is another request to send.
func (b *recalling) took(piece []byte, err error) (again bool) {
	_, _ = b.round.Write(piece) // into memory
	if b.reply != nil {
		_, _ = b.reply.Write(piece)
		// Without Options.Background it is recorded before the caller gets the
		// end, so that its next request finds the reply. After calls of recall
		// tools the caller gets nothing.
		if err != nil || b.reply.Ended() && !b.m.Called() {
			again, err = b.answer(err)
		}
	}
	if err != nil {
		b.m.Flush()
		b.err = err
	}
	return again
}

// answer records a reply that has ended with the error end, and answers its calls
// of recall tools. again says that there is another request to send; otherwise
// the error is what the caller gets after what is left, nil if bytes that say
// nothing may follow.
func (b *recalling) answer(end error) (again bool, err error) {
	if end != nil {
		b.m.Flush()
	}
	cut := end
	if cut == io.EOF {
		cut = nil
	}
	reply, unread := b.reply.Reply(end)
	b.reply = nil
	r := Reply{Reply: reply, Fit: b.x.Fit, Unread: unread, Cut: cut, Last: true}
	if !b.m.Called() {
		if cut == nil || b.m.Streams() || b.m.Rounds() == 0 {
			b.m.End(reply, false)
		}
		b.t.background(func() {
			_, r.Unrecorded = b.x.Answer(b.q.Context(), reply)
			b.over(r)
		})
		return false, end
	}
	answered := b.x.Recalls()
	again, r.Unrecorded = b.x.Answer(b.q.Context(), reply)
	r.Recalls = b.x.Recalls() - answered
	failed := errors.Join(r.Unrecorded, unread)
	switch {
	case cut != nil:
		err = cut
	case failed != nil:
		err = fmt.Errorf("%w: %w", ErrRecall, failed)
	case again:
		r.Last = false
		b.replied(r)
		b.m.Next(reply)
		_ = b.body.Close()
		return true, nil
	default:
		b.m.End(reply, true)
		err = io.EOF
	}
	b.over(r)
	return false, err
}

// replied logs and reports a reply.
func (b *recalling) replied(r Reply) {
	b.t.log(b.x, &r)
	b.t.o.Hooks.replied(&b.x.Exchange, r)
}

// over ends the exchange after its last reply.
func (b *recalling) over(r Reply) {
	b.x.Drop()
	b.replied(r)
}

// next sends the request that has the answers of the recall tools.
func (b *recalling) next() {
	resp, err := b.t.send(b.q, b.x)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil: // it was closed meanwhile
		if err == nil {
			_ = resp.Body.Close()
		}
		return
	case errors.Is(err, ErrUnrecorded):
		b.err = fmt.Errorf("%w: %w", ErrRecall, err)
	case err != nil:
		b.err = err
	case resp.StatusCode >= 300 && !b.m.Begun():
		b.refused, b.err = resp, io.EOF // in the provider's own words
		err = errRefused
	case resp.StatusCode >= 300, wire.IsStream(resp.Header.Get("Content-Type")) != b.m.Streams(), encoded(resp):
		b.breakOff(refusalIn(b.q.api, resp))
		_ = resp.Body.Close()
		err = errRefused
	default:
		b.begin(resp)
		return
	}
	b.over(Reply{Reply: &protocol.Reply{Format: b.q.api.Format()}, Fit: b.x.Fit, Cut: err, Last: true})
}

// errRefused is the error of a reply that the provider does not continue.
var errRefused = errors.New("the provider did not continue its reply")

// breakOff ends a reply with a refusal: by an event in a stream, else by an error.
func (b *recalling) breakOff(refusal *protocol.Refusal) {
	b.err = &RefusedError{refusal}
	if b.m.Streams() {
		b.err = io.EOF
		_, _ = b.out.Write(wire.ErrorEvent(b.q.api, refusal))
	}
}

// RefusedError says that the provider refused a request which it got after the
// model had called recall tools.
type RefusedError struct{ Refusal *protocol.Refusal }

func (e *RefusedError) Error() string { return e.Refusal.Message }

// refusalIn is what a provider refused a request with.
func refusalIn(api wire.API, resp *http.Response) *protocol.Refusal {
	if body, err := io.ReadAll(io.LimitReader(resp.Body, maxSmall)); err == nil {
		if reply, err := api.DecodeReply(resp.StatusCode, body); err == nil && reply.Refusal != nil {
			return reply.Refusal
		}
	}
	status := resp.StatusCode
	if status < 400 {
		status = http.StatusBadGateway
	}
	return &protocol.Refusal{Status: status, Message: "furl: the provider did not continue its reply"}
}

// Close ends the reply. What has arrived of it is recorded; with Options.Finish,
// it is first read to its end.
func (b *recalling) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.reply != nil && b.t.o.Finish > 0 {
		b.q.leave()
		b.t.after(b.finish)
		return nil
	}
	if b.reply != nil {
		_, _ = b.answer(context.Canceled)
	}
	b.end()
	return b.body.Close()
}

// end ends the exchange if its last reply has not done so.
func (b *recalling) end() {
	if b.err == nil {
		b.err = errClosed
		b.x.Drop()
	}
}

// finish reads the rest of a reply whose caller has left, and records it.
func (b *recalling) finish() {
	b.reading.Lock()
	defer b.reading.Unlock()
	for {
		b.mu.Lock()
		over := b.reply == nil || b.err != nil
		b.mu.Unlock()
		if over {
			break
		}
		b.advance()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	_ = b.body.Close()
}

// closers close together.
type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

// outBuffer is where the one reply is put together.
type outBuffer struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *outBuffer) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter. The caller has the status of the
// first reply.
func (s *outBuffer) WriteHeader(int) {}
