package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Reply is one reply of the provider.
type Reply = session.Reply

// errEncoding is the error of a reply in an encoding that furl cannot read.
var errEncoding = errors.New("unsupported Content-Encoding of the reply")

// errClosed is the error of a body that is read after it was closed.
var errClosed = errors.New("read on closed body")

// recordedBody is the body of a reply that is decoded and recorded while the caller
// reads it. With SendOptions.Later each piece is decoded when the caller reads the next
// one, so that decoding delays nothing.
type recordedBody struct {
	x         *Exchange
	body      io.ReadCloser
	reply     *wire.ReplyReader
	decodeErr error // decoding error

	readMu sync.Mutex // held while body is read: one reader at a time

	mu       sync.Mutex // a body may be closed while it is read
	pending  []byte     // read by the caller and not yet decoded
	bodyErr  error      // error that body ended with
	recorded bool       // the reply is recorded, or recording has started
	closed   bool       // by the caller
}

// newRecordedBody returns the body of a reply for the caller.
func newRecordedBody(x *Exchange, resp *http.Response) *recordedBody {
	b := &recordedBody{x: x, body: resp.Body, reply: wire.NewReplyReader(x.api, resp.StatusCode, resp.Header.Get("Content-Type"))}
	if hasEncoding(resp) {
		b.decodeErr = fmt.Errorf("%w: %.100s", errEncoding, resp.Header.Get("Content-Encoding"))
	}
	return b
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	if b.isClosed() {
		return 0, errClosed
	}
	b.readMu.Lock()
	defer b.readMu.Unlock()
	if !b.decodePending() {
		return 0, errClosed
	}
	n, err := b.body.Read(p)
	b.received(p[:n], err)
	return n, err
}

func (b *recordedBody) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// decodePending decodes the pending bytes. It returns false if the body is closed.
func (b *recordedBody) decodePending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.recorded {
		b.decode()
	}
	return !b.closed
}

// received handles a piece that the caller reads, and the read error after it.
func (b *recordedBody) received(piece []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recorded || b.closed && b.bodyErr != nil {
		return
	}
	b.pending, b.bodyErr = append(b.pending, piece...), err
	if b.x.Later || b.closed { // finish records it
		return
	}
	b.decode()
	if err != nil || b.reply.Ended() {
		b.record(err)
	}
}

// decode decodes the pending bytes. b.mu is locked.
func (b *recordedBody) decode() {
	if len(b.pending) == 0 {
		return
	}
	piece := b.pending
	b.pending = b.pending[:0]
	b.decoding(func() { _, _ = b.reply.Write(piece) })
}

// decoding calls f, which decodes. A panic becomes a decoding error.
func (b *recordedBody) decoding(f func()) {
	if b.decodeErr != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			b.decodeErr = panicked(p)
		}
	}()
	f()
}

// record decodes the pending bytes and records the reply, whose body ended with the error
// cut.
func (b *recordedBody) record(cut error) {
	b.recorded = true
	b.decode()
	reply, unread := &protocol.Reply{Format: b.x.api.Format()}, b.decodeErr
	b.decoding(func() { reply, unread = b.reply.Reply(cut) })
	if b.decodeErr != nil {
		unread = b.decodeErr
	}
	r := Reply{Reply: reply, Fit: b.x.Fit, DecodeErr: unread}
	if cut != nil && cut != io.EOF {
		r.CutErr = cut
	}
	r.RecordErr = b.x.Done(b.x.ctx, reply)
	b.x.replied(r)
	b.x.ended()
}

// replied logs and keeps a reply.
func (x *Exchange) replied(r Reply) {
	log := x.all.Options().Logger
	if r.DecodeErr != nil {
		log.Warn("reply could not be decoded", "session", x.Session.ID(), "error", upstream.Text(r.DecodeErr))
	}
	if r.RecordErr != nil {
		log.Error("reply could not be recorded", "session", x.Session.ID(), "error", upstream.Text(r.RecordErr))
	}
	x.Replies = append(x.Replies, r)
}

// Close closes the reply. The part that has arrived is recorded; with
// SendOptions.Finish, the reply is first read to its end.
func (b *recordedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	switch {
	case b.recorded || b.bodyErr != nil:
	case b.x.SendOptions.Finish > 0:
		b.x.startTimeout()
		if !b.x.Later {
			go b.finish()
		}
		return nil // finish closes it
	default:
		b.bodyErr = context.Canceled
		if !b.x.Later {
			b.record(b.bodyErr)
		}
	}
	return b.body.Close()
}

// finish reads the rest of a reply that the caller has closed, and records it.
func (b *recordedBody) finish() {
	b.readMu.Lock()
	defer b.readMu.Unlock()
	if b.recorded {
		return
	}
	b.decode()
	var buf []byte
	for b.bodyErr == nil {
		if buf == nil {
			buf = make([]byte, 32<<10)
		}
		var n int
		n, b.bodyErr = b.body.Read(buf)
		b.pending = append(b.pending, buf[:n]...)
		b.decode()
	}
	_ = b.body.Close()
	b.record(b.bodyErr)
}
