package furlhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// errEncoding is the error of a reply in an encoding that furl cannot read.
var errEncoding = errors.New("unsupported Content-Encoding of the reply")

// recordedBody is the body of a reply that is decoded and recorded while the caller
// reads it. Without Options.Background the reply is recorded before the caller
// reads its end. Otherwise each piece is decoded when the caller reads the next
// one, so that decoding delays nothing.
type recordedBody struct {
	t         *Transport
	q         *modelRequest
	x         *exchange.Exchange
	body      io.ReadCloser
	reply     *wire.ReplyReader
	decodeErr error // decoding error

	readMu sync.Mutex // held while body is read: one reader at a time

	mu          sync.Mutex // a body may be closed while it is read
	pending     []byte     // read by the caller and not yet decoded
	bodyErr     error      // error that body ended with
	recorded    bool       // the reply is recorded, or recording has started
	closed      bool       // by the caller
	readingRest bool       // closed by the caller; readRest reads the rest to record it
}

// recordBody returns the body of a reply for the caller.
func (t *Transport) recordBody(q *modelRequest, x *exchange.Exchange, resp *http.Response) io.ReadCloser {
	o := &recordedBody{t: t, q: q, x: x, body: resp.Body, reply: wire.NewReplyReader(q.api, resp.StatusCode, resp.Header.Get("Content-Type"))}
	if hasEncoding(resp) {
		o.decodeErr = fmt.Errorf("%w: %s", errEncoding, OneLine(resp.Header.Get("Content-Encoding")))
	}
	return o
}

// Read implements io.Reader.
func (o *recordedBody) Read(p []byte) (int, error) {
	if o.isClosed() {
		return 0, errClosed
	}
	o.readMu.Lock()
	defer o.readMu.Unlock()
	if !o.decodePending() {
		return 0, errClosed
	}
	n, err := o.body.Read(p)
	o.received(p[:n], err)
	return n, err
}

func (o *recordedBody) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// decodePending decodes the pending bytes. It returns false if the body is closed.
func (o *recordedBody) decodePending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.recorded {
		o.decode()
	}
	return !o.closed
}

// received handles a piece that the caller reads, and the read error after it.
func (o *recordedBody) received(piece []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.recorded && !o.readingRest {
		return
	}
	o.pending, o.bodyErr = append(o.pending, piece...), err
	if o.readingRest { // it was closed meanwhile
		return
	}
	if o.t.o.Background == nil {
		o.decode()
	}
	if err != nil || o.t.o.Background == nil && o.reply.Ended() {
		o.startRecording(err)
	}
}

// decode decodes the pending bytes. o.mu is locked.
func (o *recordedBody) decode() {
	if len(o.pending) == 0 {
		return
	}
	piece := o.pending
	o.pending = o.pending[:0]
	o.recoverDecode(func() { _, _ = o.reply.Write(piece) })
}

// recoverDecode calls f, which decodes. A panic becomes a decoding error.
func (o *recordedBody) recoverDecode(f func()) {
	if o.decodeErr != nil {
		return
	}
	if o.t.o.Hooks.Panicked != nil {
		defer func() {
			if p := recover(); p != nil {
				o.decodeErr = errors.New("panic while decoding")
				o.t.o.Hooks.Panicked(p)
			}
		}()
	}
	f()
}

// startRecording starts recording the reply. cut is the error that its body
// ended with. o.mu is locked.
func (o *recordedBody) startRecording(cut error) {
	o.recorded = true
	o.t.runAtEnd(func() { o.record(cut) })
}

// runAtEnd runs work with Options.Background, or at once without it.
func (t *Transport) runAtEnd(work func()) {
	if t.o.Background != nil {
		t.o.Background(work)
		return
	}
	work()
}

// record decodes the pending bytes and records the reply.
func (o *recordedBody) record(cut error) {
	defer o.x.Drop()
	o.decode()
	reply, unread := &protocol.Reply{Format: o.q.api.Format()}, o.decodeErr
	o.recoverDecode(func() { reply, unread = o.reply.Reply(cut) })
	if unread == nil {
		unread = o.decodeErr
	}
	r := Reply{Reply: reply, Fit: o.x.Fit, DecodeErr: unread, Last: true}
	if cut != nil && cut != io.EOF {
		r.CutErr = cut
	}
	r.RecordErr = o.x.Done(o.q.Context(), reply)
	o.t.log(o.x, &r)
	o.t.o.Hooks.replied(&o.x.Exchange, r)
}

// log logs the errors of a reply.
func (t *Transport) log(x *exchange.Exchange, r *Reply) {
	if r.DecodeErr != nil {
		t.o.Logger.Warn("reply could not be decoded", "session", x.Session.ID(), "error", upstream.Text(r.DecodeErr))
	}
	if r.RecordErr != nil {
		t.o.Logger.Error("reply could not be recorded", "session", x.Session.ID(), "error", upstream.Text(r.RecordErr))
	}
}

// Close closes the reply. The part that has arrived is recorded; with
// Options.Finish, the reply is first read to its end.
func (o *recordedBody) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	switch {
	case o.recorded:
	case o.t.o.Finish <= 0:
		o.startRecording(context.Canceled)
	default:
		o.recorded, o.readingRest = true, true
		o.q.startTimeout()
		o.t.runLater(o.readRest)
		return nil
	}
	return o.body.Close()
}

// runLater runs work with Options.Background, or on another goroutine without it.
func (t *Transport) runLater(work func()) {
	if t.o.Background != nil {
		t.o.Background(work)
		return
	}
	go work()
}

// readRest reads the rest of a reply that the caller has closed, and records it.
func (o *recordedBody) readRest() {
	o.readMu.Lock()
	defer o.readMu.Unlock()
	o.decode()
	buf := make([]byte, 32<<10)
	for o.bodyErr == nil {
		var n int
		n, o.bodyErr = o.body.Read(buf)
		o.pending = append(o.pending, buf[:n]...)
		o.decode()
	}
	_ = o.body.Close()
	o.record(o.bodyErr)
}
