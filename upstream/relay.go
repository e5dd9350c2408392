package upstream

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Observer follows an answer that is relayed. Its methods are called from one
// goroutine of its own, behind the client: how long they take, and whether
// they panic, is nothing to the client.
type Observer interface {
	// Chunk gets the next bytes of the body, as the client got them or some
	// of them in one. They are valid during the call.
	Chunk(p []byte)

	// End is called once, at last. The error is nil if the body came to its
	// end, ErrLost if the observer was left behind, and otherwise what cut the
	// body off: an [*Error].
	End(err error)
}

// ErrLost tells an Observer that more bytes were waiting for it than may, and
// that the rest went by without it.
var ErrLost = errors.New("the observer is too slow")

// Relayed is what came of a relay.
type Relayed struct {
	// Read and Sent are bytes of the body: what came from the provider and
	// what the client took.
	Read, Sent int64
	// Gone is set if the client left before the end.
	Gone bool
	// Observed is closed when the Observer's End has returned. Relay does not
	// wait for it, because the client's answer ends when the handler returns.
	// Without an Observer it is closed.
	Observed <-chan struct{}
}

// Relay answers a client with the provider's answer: status, headers, and the
// body piece by piece as it comes, each flushed unless the length of the whole
// is known. Headers that w has already stay, unless the provider gives them
// too. observer may be nil.
//
// It returns when the body has ended, or, if the client left, when the rest
// has been read for the observer (Options.Finish). A body that was cut off is
// an [*Error]. Then the client must not be led to believe that it is whole:
// the handler writes what the format has for the case, such as an error event,
// or panics with [http.ErrAbortHandler], which cuts the client off too. A
// client that left is an error wrapping ErrClientGone only if that cut the
// body off; some leave as soon as they have read the last event, before the
// body has ended, so that the reply may be complete all the same.
//
// The Response is not closed.
func (c *Client) Relay(w http.ResponseWriter, resp *Response, observer Observer) (Relayed, error) {
	out := &sink{w: w, rc: http.NewResponseController(w), stall: c.opts.Stall}
	// A request passed on as a stream may still be under way; without this the
	// server takes its body away with the first byte of the answer.
	_ = out.rc.EnableFullDuplex() // not every writer can
	h := w.Header()
	maps.Copy(h, resp.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // else the server guesses one
	}
	for name := range resp.in.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(resp.Status)
	out.flush = h.Get("Content-Length") == ""
	if out.flush {
		out.error(out.rc.Flush()) // the header, before the first byte of the body
	}
	tap := c.tap(observer)
	err := c.pump(out, resp, tap)
	tap.end(err)
	if err != nil && !out.gone {
		out.error(out.rc.Flush()) // what came before the cut is the client's
	}
	out.trailer(resp)
	out.done()
	return Relayed{Read: out.read, Sent: out.sent, Gone: out.gone, Observed: tap.observed}, err
}

// piece is the size of the pieces in which a body is copied.
const piece = 32 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// pump copies the body until it ends.
func (c *Client) pump(out *sink, resp *Response, tap *tap) error {
	buf := pieces.Get().(*[piece]byte)
	defer pieces.Put(buf)
	for {
		n, err := resp.Read(buf[:])
		left := out.gone
		out.write(buf[:n])
		tap.write(buf[:n])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			if errors.Is(err, ErrClientGone) {
				out.gone = true
			}
			return err
		case out.gone && !left && c.opts.Finish <= 0:
			return c.fail(StageBody, ErrClientGone, nil)
		case out.gone && !left:
			resp.endAfter(c.opts.Finish, ErrClientGone)
		}
	}
}

// sink is the client's side.
type sink struct {
	w          http.ResponseWriter
	rc         *http.ResponseController
	stall      time.Duration
	flush      bool
	gone       bool
	read, sent int64
}

func (s *sink) write(p []byte) {
	s.read += int64(len(p))
	if s.gone || len(p) == 0 {
		return
	}
	// Not every writer has deadlines; the server's own limits hold then.
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.stall))
	n, err := s.w.Write(p)
	s.sent += int64(n)
	if err == nil && s.flush {
		err = s.rc.Flush()
	}
	s.error(err)
}

func (s *sink) error(err error) {
	switch {
	case err == nil:
	case errors.Is(err, http.ErrNotSupported):
		s.flush = false // a writer that holds nothing back
	case errors.Is(err, http.ErrBodyNotAllowed): // an answer to HEAD
	default:
		s.gone = true
	}
}

// trailer sends what came behind the body, announced or not.
func (s *sink) trailer(resp *Response) {
	h := s.w.Header()
	for name, values := range resp.Trailer() {
		key := name
		if !slices.Contains(h["Trailer"], name) {
			key = http.TrailerPrefix + name
		}
		h[key] = values
	}
}

// done leaves the connection as it was.
func (s *sink) done() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// tap queues bytes for an observer.
type tap struct {
	observed chan struct{}
	mu       sync.Mutex
	wake     *sync.Cond
	buf      []byte
	most     int
	lost     bool // it has fallen behind, or there is none
	ended    bool
	err      error
}

// tap starts an observer.
func (c *Client) tap(o Observer) *tap {
	t := &tap{observed: make(chan struct{}), most: c.opts.MaxQueue}
	t.wake = sync.NewCond(&t.mu)
	if o == nil {
		t.lost = true
		close(t.observed)
		return t
	}
	c.work.Go(func() {
		defer close(t.observed)
		defer func() {
			if p := recover(); p != nil {
				t.quit()
				c.log.Error("an observer panicked", "host", c.base.Host, "panic", Panicked(p), "stack", string(debug.Stack()))
			}
		}()
		t.run(o)
	})
	return t
}

func (t *tap) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || len(p) == 0 {
		return
	}
	if len(t.buf)+len(p) > t.most {
		t.lost, t.buf = true, nil
	} else {
		t.buf = append(t.buf, p...)
	}
	t.wake.Signal()
}

func (t *tap) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.err = true, err
	t.wake.Signal()
}

// quit drops what comes from now on.
func (t *tap) quit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost, t.buf = true, nil
}

func (t *tap) run(o Observer) {
	var mine []byte
	for {
		t.mu.Lock()
		for len(t.buf) == 0 && !t.ended && !t.lost {
			t.wake.Wait()
		}
		mine, t.buf = t.buf, mine[:0]
		lost, ended, err := t.lost, t.ended, t.err
		t.mu.Unlock()
		switch {
		case lost:
			o.End(ErrLost)
			return
		case len(mine) > 0:
			o.Chunk(mine)
		case ended:
			o.End(err)
			return
		}
	}
}
