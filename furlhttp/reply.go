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

// errEncoded is the error of a reply in an encoding that furl cannot read.
var errEncoded = errors.New("the reply is encoded")

// observed is the body of a reply that is decoded and recorded while the caller
// reads it. Without Options.Background that is done before the caller gets the
// end, otherwise each piece is decoded when the caller asks for the next one, and
// so has read it.
type observed struct {
	t      *Transport
	q      *query
	x      *exchange.Exchange
	body   io.ReadCloser
	reply  *wire.ReplyReader
	unread error // the reply cannot be decoded

	reading sync.Mutex // held while body is read: one reader at a time

	mu      sync.Mutex // a body may be closed while it is read
	pending []byte     // the caller has it, reply does not
	ended   error      // what body ended with
	over    bool       // the reply is recorded, or about to be
	closed  bool       // by the caller
	finish  bool       // the caller has left, and the rest is read for the record
}

// observe returns the body of a reply for its caller.
func (t *Transport) observe(q *query, x *exchange.Exchange, resp *http.Response) io.ReadCloser {
	o := &observed{t: t, q: q, x: x, body: resp.Body, reply: wire.NewReplyReader(q.api, resp.StatusCode, resp.Header.Get("Content-Type"))}
	if encoded(resp) {
		o.unread = fmt.Errorf("%w: %s", errEncoded, OneLine(resp.Header.Get("Content-Encoding")))
	}
	return o
}

// Read implements io.Reader.
func (o *observed) Read(p []byte) (int, error) {
	if o.isClosed() {
		return 0, errClosed
	}
	o.reading.Lock()
	defer o.reading.Unlock()
	if !o.next() {
		return 0, errClosed
	}
	n, err := o.body.Read(p)
	o.took(p[:n], err)
	return n, err
}

func (o *observed) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// next decodes what the caller has. It reports whether the caller may have more.
func (o *observed) next() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.decode()
	}
	return !o.closed
}

// took takes a piece that was read for the caller, and the error after it.
func (o *observed) took(piece []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over && !o.finish {
		return
	}
	o.pending, o.ended = append(o.pending, piece...), err
	if o.finish { // it was closed meanwhile
		return
	}
	if o.t.o.Background == nil {
		o.decode()
	}
	if err != nil || o.t.o.Background == nil && o.reply.Ended() {
		o.end(err)
	}
}

// decode decodes what is pending. o is locked.
func (o *observed) decode() {
	if len(o.pending) == 0 {
		return
	}
	piece := o.pending
	o.pending = o.pending[:0]
	o.guard(func() { _, _ = o.reply.Write(piece) })
}

// guard calls f, which decodes. If that panics, the reply counts as unread.
func (o *observed) guard(f func()) {
	if o.unread != nil {
		return
	}
	if o.t.o.Hooks.Panicked != nil {
		defer func() {
			if p := recover(); p != nil {
				o.unread = errors.New("decoding it panicked")
				o.t.o.Hooks.Panicked(p)
			}
		}()
	}
	f()
}

// end has the reply recorded. cut is the error that its body ended with. o is
// locked.
func (o *observed) end(cut error) {
	o.over = true
	o.t.background(func() { o.record(cut) })
}

// background runs work after the caller has read the end of a reply, or at once.
func (t *Transport) background(work func()) {
	if t.o.Background != nil {
		t.o.Background(work)
		return
	}
	work()
}

// record decodes what is left and records the reply.
func (o *observed) record(cut error) {
	defer o.x.Drop()
	o.decode()
	reply, unread := &protocol.Reply{Format: o.q.api.Format()}, o.unread
	o.guard(func() { reply, unread = o.reply.Reply(cut) })
	if unread == nil {
		unread = o.unread
	}
	r := Reply{Reply: reply, Fit: o.x.Fit, Unread: unread, Last: true}
	if cut != nil && cut != io.EOF {
		r.Cut = cut
	}
	r.Unrecorded = o.x.Done(o.q.Context(), reply)
	o.t.log(o.x, &r)
	o.t.o.Hooks.replied(&o.x.Exchange, r)
}

// log logs what went wrong with a reply.
func (t *Transport) log(x *exchange.Exchange, r *Reply) {
	if r.Unread != nil {
		t.o.Logger.Warn("reply could not be decoded", "session", x.Session.ID(), "error", upstream.Text(r.Unread))
	}
	if r.Unrecorded != nil {
		t.o.Logger.Error("reply could not be recorded", "session", x.Session.ID(), "error", upstream.Text(r.Unrecorded))
	}
}

// Close ends the reply. What has arrived of it is recorded; with Options.Finish,
// it is first read to its end.
func (o *observed) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	switch {
	case o.over:
	case o.t.o.Finish <= 0:
		o.end(context.Canceled)
	default:
		o.over, o.finish = true, true
		o.q.leave()
		o.t.after(o.readOn)
		return nil
	}
	return o.body.Close()
}

// after runs work that the caller does not wait for.
func (t *Transport) after(work func()) {
	if t.o.Background != nil {
		t.o.Background(work)
		return
	}
	go work()
}

// readOn reads the rest of a reply whose caller has left, and records it.
func (o *observed) readOn() {
	o.reading.Lock()
	defer o.reading.Unlock()
	o.decode()
	buf := make([]byte, 32<<10)
	for o.ended == nil {
		var n int
		n, o.ended = o.body.Read(buf)
		o.pending = append(o.pending, buf[:n]...)
		o.decode()
	}
	_ = o.body.Close()
	o.record(o.ended)
}
