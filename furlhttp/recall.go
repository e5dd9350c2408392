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
var ErrRecall = errors.New("could not answer the model's call of a recall tool")

// errClosed is the error of a body that is read after it was closed.
var errClosed = errors.New("read on closed body")

// recallBody is the body of the reply to a request with recall tools. It removes
// and answers calls of these tools, and continues with the reply to the next
// request. The caller reads one reply.
type recallBody struct {
	t      *Transport
	q      *modelRequest // with a context that ends when the body is closed
	cancel context.CancelFunc
	x      *exchange.Exchange
	merger *onereply.Merger
	piece  []byte
	readMu sync.Mutex // held while a reply is read: one reader at a time

	mu          sync.Mutex // a body may be closed while it is read
	out         outBuffer  // bytes that the caller reads next
	err         error      // returned once out is empty; nil: more follows
	closed      bool
	body        io.ReadCloser
	reply       *wire.ReplyReader // of the current reply; nil once that is recorded
	roundWriter http.ResponseWriter
	refused     *http.Response // refusal of a continuing request, returned instead
}

// recall returns the reply to a request with recall tools; resp is its first part.
// It reads a reply that is not a stream to its end.
func (t *Transport) recall(q *modelRequest, x *exchange.Exchange, resp *http.Response) (*http.Response, error) {
	b := &recallBody{t: t, x: x, piece: make([]byte, 32<<10)}
	own := *q
	ctx, cancel := context.WithCancel(q.Context())
	own.Request = q.WithContext(ctx)
	b.q, b.cancel = &own, cancel
	b.out.header = resp.Header.Clone()
	stream := wire.IsStream(resp.Header.Get("Content-Type"))
	b.merger = onereply.New(&b.out, q.api, stream, x.IsRecall)
	b.startReply(resp)
	if !stream {
		b.fill()
		switch {
		case b.refused != nil:
			b.refused.Body = &splitBody{b.refused.Body, closers{b.refused.Body, b}}
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

// startReply starts reading the next reply.
func (b *recallBody) startReply(resp *http.Response) {
	b.body, b.roundWriter = resp.Body, b.merger.Round()
	b.reply = wire.NewReplyReader(b.q.api, resp.StatusCode, resp.Header.Get("Content-Type"))
	b.roundWriter.WriteHeader(resp.StatusCode)
}

// Read reads the joined reply.
func (b *recallBody) Read(p []byte) (int, error) {
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

// fill reads until there are bytes for the caller, or the reply ends.
func (b *recallBody) fill() {
	b.readMu.Lock()
	defer b.readMu.Unlock()
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

// advance reads one piece of the current reply, or sends the next request.
// b.reading is locked.
func (b *recallBody) advance() {
	n, err := b.body.Read(b.piece)
	b.mu.Lock()
	again := b.err == nil && b.received(b.piece[:n], err)
	b.mu.Unlock()
	if again {
		b.sendNext()
	}
}

// received handles a piece of a reply and the read error after it. It returns
// true if the reply has ended and another request must be sent.
func (b *recallBody) received(piece []byte, err error) (again bool) {
	_, _ = b.roundWriter.Write(piece) // into memory
	if b.reply != nil {
		_, _ = b.reply.Write(piece)
		// Without Options.Background the reply is recorded before the caller
		// reads its end, so that the caller's next request finds it. With calls of
		// recall tools the caller does not read this end.
		if err != nil || b.reply.Ended() && !b.merger.Called() {
			again, err = b.endReply(err)
		}
	}
	if err != nil {
		b.merger.Flush()
		b.err = err
	}
	return again
}

// endReply records a reply whose body ended with the error end, and answers its
// calls of recall tools. If again is true, another request must be sent.
// Otherwise err is the error that the caller reads at the end, nil if the body
// has not ended.
func (b *recallBody) endReply(end error) (again bool, err error) {
	if end != nil {
		b.merger.Flush()
	}
	cut := end
	if cut == io.EOF {
		cut = nil
	}
	reply, unread := b.reply.Reply(end)
	b.reply = nil
	r := Reply{Reply: reply, Fit: b.x.Fit, DecodeErr: unread, CutErr: cut, Last: true}
	if !b.merger.Called() {
		if cut == nil || b.merger.Streams() || b.merger.Rounds() == 0 {
			b.merger.End(reply, false)
		}
		b.t.runAtEnd(func() {
			_, r.RecordErr = b.x.Answer(b.q.Context(), reply)
			b.finishExchange(r)
		})
		return false, end
	}
	answered := b.x.Recalls()
	again, r.RecordErr = b.x.Answer(b.q.Context(), reply)
	r.Recalls = b.x.Recalls() - answered
	failed := errors.Join(r.RecordErr, unread)
	switch {
	case cut != nil:
		err = cut
	case failed != nil:
		err = fmt.Errorf("%w: %w", ErrRecall, failed)
	case again:
		r.Last = false
		b.replied(r)
		b.merger.Next(reply)
		_ = b.body.Close()
		return true, nil
	default:
		b.merger.End(reply, true)
		err = io.EOF
	}
	b.finishExchange(r)
	return false, err
}

// replied logs and reports a reply.
func (b *recallBody) replied(r Reply) {
	b.t.log(b.x, &r)
	b.t.o.Hooks.replied(&b.x.Exchange, r)
}

// finishExchange releases the exchange after its last reply.
func (b *recallBody) finishExchange(r Reply) {
	b.x.Drop()
	b.replied(r)
}

// sendNext sends the request with the results of the recall tools.
func (b *recallBody) sendNext() {
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
	case resp.StatusCode >= 300 && !b.merger.Started():
		b.refused, b.err = resp, io.EOF // the caller gets the provider's error
		err = errRefused
	case resp.StatusCode >= 300, wire.IsStream(resp.Header.Get("Content-Type")) != b.merger.Streams(), hasEncoding(resp):
		b.endRefused(refusalOf(b.q.api, resp))
		_ = resp.Body.Close()
		err = errRefused
	default:
		b.startReply(resp)
		return
	}
	b.finishExchange(Reply{Reply: &protocol.Reply{Format: b.q.api.Format()}, Fit: b.x.Fit, CutErr: err, Last: true})
}

// errRefused is the error of a reply that the provider does not continue.
var errRefused = errors.New("the provider did not continue its reply")

// endRefused ends a reply with a refusal: as an event in a stream, else as an
// error.
func (b *recallBody) endRefused(refusal *protocol.Refusal) {
	b.err = &RefusedError{refusal}
	if b.merger.Streams() {
		b.err = io.EOF
		_, _ = b.out.Write(wire.ErrorEvent(b.q.api, refusal))
	}
}

// RefusedError is the error of a reply whose continuation the provider refused,
// after the model had called recall tools.
type RefusedError struct{ Refusal *protocol.Refusal }

func (e *RefusedError) Error() string { return e.Refusal.Message }

// refusalOf returns the refusal in a response.
func refusalOf(api wire.API, resp *http.Response) *protocol.Refusal {
	if body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)); err == nil {
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

// Close closes the reply. The part that has arrived is recorded; with
// Options.Finish, the reply is first read to its end.
func (b *recallBody) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.reply != nil && b.t.o.Finish > 0 {
		b.q.startTimeout()
		b.t.runLater(b.readRest)
		return nil
	}
	if b.reply != nil {
		_, _ = b.endReply(context.Canceled)
	}
	b.dropExchange()
	return b.body.Close()
}

// dropExchange releases the exchange unless its last reply has done so.
func (b *recallBody) dropExchange() {
	if b.err == nil {
		b.err = errClosed
		b.x.Drop()
	}
}

// readRest reads the rest of a reply that the caller has closed, and records it.
func (b *recallBody) readRest() {
	b.readMu.Lock()
	defer b.readMu.Unlock()
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
	b.dropExchange()
	_ = b.body.Close()
}

// closers closes all its elements.
type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

// outBuffer is the http.ResponseWriter that the joined reply is written to.
type outBuffer struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *outBuffer) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter. It does nothing: the caller gets the
// status of the first reply.
func (s *outBuffer) WriteHeader(int) {}
