package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/furlhq/furl/internal/onereply"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// ErrRecall is wrapped by the error of a reply that cannot be continued after the
// model has called a recall tool.
var ErrRecall = errors.New("could not answer the model's call of a recall tool")

// joinedBody is the body of the reply to a request with recall tools. It removes
// and answers calls of these tools, and continues with the reply to the next
// request. The caller reads one reply.
type joinedBody struct {
	x      *Exchange
	ctx    context.Context // of the request; it ends when the body is closed
	cancel context.CancelFunc
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
	last        func()         // records the last reply; nil: there is none, or it was recorded
	ended       bool           // the exchange has ended
}

// joinReplies returns the reply to a request with recall tools; resp is its first part.
// It reads a reply that is not a stream to its end.
func (x *Exchange) joinReplies(resp *http.Response) (*http.Response, error) {
	b := &joinedBody{x: x, piece: make([]byte, 32<<10)}
	b.ctx, b.cancel = context.WithCancel(x.ctx)
	b.out.header = resp.Header.Clone()
	x.reading = b
	stream := wire.IsStream(resp.Header.Get("Content-Type"))
	b.merger = onereply.New(&b.out, x.api, stream, x.IsRecall)
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
func (b *joinedBody) startReply(resp *http.Response) {
	b.body, b.roundWriter = resp.Body, b.merger.Round()
	b.reply = wire.NewReplyReader(b.x.api, resp.StatusCode, resp.Header.Get("Content-Type"))
	b.roundWriter.WriteHeader(resp.StatusCode)
}

// Read reads the joined reply.
func (b *joinedBody) Read(p []byte) (int, error) {
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
func (b *joinedBody) fill() {
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
func (b *joinedBody) advance() {
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
func (b *joinedBody) received(piece []byte, err error) (again bool) {
	_, _ = b.roundWriter.Write(piece) // into memory
	if b.reply != nil {
		_, _ = b.reply.Write(piece)
		// With calls of recall tools the caller does not read this end.
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
func (b *joinedBody) endReply(end error) (again bool, err error) {
	if end != nil {
		b.merger.Flush()
	}
	cut := end
	if cut == io.EOF {
		cut = nil
	}
	reply, unread := b.reply.Reply(end)
	b.reply = nil
	r := Reply{Reply: reply, Fit: b.x.Fit, DecodeErr: unread, CutErr: cut}
	if !b.merger.Called() {
		if cut == nil || b.merger.Streams() || b.merger.Rounds() == 0 {
			b.merger.End(reply, false)
		}
		b.last = func() {
			_, r.RecordErr = b.x.Answer(b.ctx, reply)
			b.end(r)
		}
		if !b.x.Later {
			b.recordLast()
		}
		return false, end
	}
	answered := b.x.Recalls()
	again, r.RecordErr = b.x.Answer(b.ctx, reply)
	r.Recalls = b.x.Recalls() - answered
	failed := errors.Join(r.RecordErr, unread)
	switch {
	case cut != nil:
		err = cut
	case failed != nil:
		err = fmt.Errorf("%w: %w", ErrRecall, failed)
	case again:
		b.x.replied(r)
		b.merger.Next(reply)
		_ = b.body.Close()
		return true, nil
	default:
		b.merger.End(reply, true)
		err = io.EOF
	}
	b.end(r)
	return false, err
}

// recordLast records the last reply, unless that was done.
func (b *joinedBody) recordLast() {
	if record := b.last; record != nil {
		b.last = nil
		record()
	}
}

// end ends the exchange with its last reply.
func (b *joinedBody) end(r Reply) {
	b.x.replied(r)
	b.ended = true
	b.x.ended()
}

// sendNext sends the request with the results of the recall tools.
func (b *joinedBody) sendNext() {
	resp, err := b.x.send(b.ctx)
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
		b.endRefused(refusalOf(b.x.api, resp))
		_ = resp.Body.Close()
		err = errRefused
	default:
		b.startReply(resp)
		return
	}
	b.end(Reply{Reply: &protocol.Reply{Format: b.x.api.Format()}, Fit: b.x.Fit, CutErr: err})
}

// errRefused is the error of a reply that the provider does not continue.
var errRefused = errors.New("the provider did not continue its reply")

// endRefused ends a reply with a refusal: as an event in a stream, else as an
// error.
func (b *joinedBody) endRefused(refusal *protocol.Refusal) {
	b.err = refusal
	if b.merger.Streams() {
		b.err = io.EOF
		_, _ = b.out.Write(wire.ErrorEvent(b.x.api, refusal))
	}
}

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
// SendOptions.Finish, the reply is first read to its end.
func (b *joinedBody) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.reply != nil && b.x.SendOptions.Finish > 0 {
		b.x.startTimeout()
		if !b.x.Later {
			go b.finish()
		}
		return nil // finish closes it
	}
	if b.reply != nil {
		_, _ = b.endReply(context.Canceled)
	}
	b.endExchange()
	return b.body.Close()
}

// endExchange ends the exchange, unless its last reply has done so or will. b.mu is locked.
func (b *joinedBody) endExchange() {
	if b.err == nil {
		b.err = errClosed
	}
	if !b.ended && b.last == nil {
		b.ended = true
		b.x.ended()
	}
}

// finish reads the rest of a reply that the caller has closed, and records it.
func (b *joinedBody) finish() {
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
	b.recordLast()
	b.endExchange()
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
