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

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/onereply"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// recalled is the body of the answer to a request that has recall tools. Calls
// of those are held back and answered, and what comes back to the next request
// goes on where the answer stopped: the caller reads one answer.
type recalled struct {
	t      *Transport
	r      *http.Request // with a context that ends when the body is closed
	cancel context.CancelFunc
	codec  wire.API
	x      *session.Exchange
	m      *onereply.Merger
	chunk  []byte

	mu       sync.Mutex // a body may be closed while it is read
	out      sink       // what the caller reads next
	err      error      // behind that; nil: there is more
	body     io.ReadCloser
	listener *session.Listener // of the answer at hand; nil: it is recorded
	round    http.ResponseWriter
	refused  *http.Response // in place of what follows a recall
}

// recall gives the answer to a request with recall tools, of which resp is the
// beginning. One that is no stream is whole by then.
func (t *Transport) recall(r *http.Request, codec wire.API, x *session.Exchange, resp *http.Response, l *session.Listener) (*http.Response, error) {
	b := &recalled{t: t, codec: codec, x: x, chunk: make([]byte, 32<<10)}
	ctx, cancel := context.WithCancel(r.Context())
	b.r, b.cancel = r.WithContext(ctx), cancel
	b.out.header = resp.Header.Clone()
	b.m = onereply.New(&b.out, codec, l.Stream(), x.IsRecall)
	b.begin(resp, l)
	if !l.Stream() {
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
	if n, err := strconv.ParseInt(out.Header.Get("Content-Length"), 10, 64); err == nil && !l.Stream() {
		out.ContentLength = n
	} else {
		out.Header.Del("Content-Length")
	}
	return &out, nil
}

// begin takes the next answer.
func (b *recalled) begin(resp *http.Response, l *session.Listener) {
	b.body, b.listener, b.round = resp.Body, l, b.m.Round()
	b.round.WriteHeader(resp.StatusCode)
}

// Read gives what has come of the answer, and goes on behind calls of recall.
func (b *recalled) Read(p []byte) (int, error) {
	b.fill()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.out.Len() > 0 {
		return b.out.Read(p)
	}
	return 0, b.err
}

// fill waits until there is something to be read.
func (b *recalled) fill() {
	for {
		b.mu.Lock()
		body, ready := b.body, b.out.Len() > 0 || b.err != nil
		b.mu.Unlock()
		if ready {
			return
		}
		n, err := body.Read(b.chunk)
		b.mu.Lock()
		again := b.err == nil && b.took(b.chunk[:n], err)
		b.mu.Unlock()
		if again {
			b.next()
		}
	}
}

// took takes a piece of an answer, and the error behind it. It reports whether
// that was the end and there is another to be asked for.
func (b *recalled) took(piece []byte, err error) (again bool) {
	_, _ = b.round.Write(piece) // into memory
	if b.listener != nil {
		_, _ = b.listener.Write(piece)
		// Recorded before the caller learns of the end, so that its next request
		// finds the reply. Behind calls of recall nothing is to be learned.
		if err != nil || b.listener.Ended() && !b.m.Called() {
			again, err = b.answer(err)
		}
	}
	if err != nil {
		b.m.Flush()
		b.err = err
	}
	return again
}

// answer records an answer that is over and answers its calls of recall. again
// says that there is a next request; otherwise the error is what the caller gets
// behind what is left, nil if more may come that says nothing.
func (b *recalled) answer(end error) (again bool, err error) {
	if end != nil {
		b.m.Flush()
	}
	cut := end != nil && end != io.EOF
	reply, unread := b.listener.Reply()
	b.listener = nil
	called := b.m.Called()
	if !called && (!cut || b.m.Streams() || b.m.Rounds() == 0) {
		b.m.End(reply, false)
	}
	again, err = b.x.Answer(b.r.Context(), reply)
	if unread != nil {
		b.t.o.Logger.Warn("a reply could not be read", "error", unread)
	}
	if err != nil {
		b.t.o.Logger.Warn("a reply could not be recorded", "error", err)
	}
	switch {
	case !called || cut:
		err = end // the caller has all of it, whatever became of its record
	case err != nil || unread != nil:
		err = fmt.Errorf("furl: what the model asked memory for could not be answered: %w", errors.Join(err, unread))
	case again:
		b.m.Next(reply)
		_ = b.body.Close()
		return true, nil
	default:
		b.m.End(reply, true)
		err = io.EOF
	}
	b.x.Drop()
	b.t.ended(b.x, reply)
	return false, err
}

// next sends the request that has the answers of recall.
func (b *recalled) next() {
	resp, l, reply, err := b.t.try(b.r, b.codec.Format(), b.x)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil: // it was closed meanwhile
		if err == nil {
			_ = resp.Body.Close()
		}
		return
	case err != nil:
		b.err = err
	case l == nil || resp.StatusCode < 400 && l.Stream() != b.m.Streams():
		_ = resp.Body.Close()
		b.err = errors.New("furl: the provider did not go on with its answer")
	case resp.StatusCode < 400:
		b.begin(resp, l)
		return
	case !b.m.Streams():
		b.refused, b.err = resp, io.EOF
	default:
		_ = resp.Body.Close()
		refusal := &furl.Refusal{Status: resp.StatusCode, Message: "furl: the provider did not go on with its answer"}
		if reply != nil && reply.Refusal != nil {
			refusal = reply.Refusal
		}
		if event, data := b.codec.ErrorEvent(refusal); event != "" {
			fmt.Fprintf(&b.out, "\n\nevent: %s\ndata: %s\n\n", event, data)
		} else {
			fmt.Fprintf(&b.out, "\n\ndata: %s\n\n", data)
		}
		b.err = io.EOF
	}
	b.x.Drop()
	b.t.ended(b.x, reply)
}

// Close gives up what is not read. What has come of the answer is recorded.
func (b *recalled) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != nil {
		_, _ = b.answer(context.Canceled)
	}
	if b.err == nil {
		b.err = errClosed
		b.x.Drop()
	}
	return b.body.Close()
}

// closers close together.
type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

var errClosed = errors.New("furl: the body was closed")

// sink is where an answer is put together.
type sink struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *sink) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter. The caller has the status of the
// first answer.
func (s *sink) WriteHeader(int) {}
