package upstream

import (
	"bytes"
	"io"
	"time"
)

// Peek reads the beginning of the body ahead of whoever relays it, until
// enough reports that it has seen enough, the body ends, most bytes were read,
// or the time is over. All that was read is put back, so that a relay begins
// with it; an error is left for the relay to find too. A piece is valid during
// the call of enough.
func (r *Response) Peek(most int, wait time.Duration, enough func(piece []byte) bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var held []byte
	rest := r.rest()
	buf := make([]byte, 4<<10)
	for {
		// The time may be over in the midst of a read, which cannot be taken
		// back: the relay goes on with what it gives.
		next := make(chan readOnce, 1)
		r.client.work.Go(func() {
			n, err := rest.Read(buf)
			next <- readOnce{buf[:n], err}
		})
		select {
		case got := <-next:
			held = append(held, got.p...)
			stop := len(got.p) > 0 && enough(got.p) || len(held) >= most
			if got.err != nil {
				rest, stop = &late{err: got.err}, true
			}
			if stop {
				r.again(held, rest)
				return
			}
		case <-timer.C:
			r.again(held, &late{next: next, rest: rest})
			return
		}
	}
}

// again makes the body one that begins with what was held back.
func (r *Response) again(held []byte, rest io.Reader) {
	r.body, r.readErr = io.MultiReader(bytes.NewReader(held), rest), nil
}

// rest is what was not read yet of the body.
func (r *Response) rest() io.Reader {
	if r.readErr != nil {
		return &late{err: r.readErr}
	}
	return r.body
}

// readOnce is what a read gave.
type readOnce struct {
	p   []byte
	err error
}

// late reads on behind a read that is still under way.
type late struct {
	next <-chan readOnce // nil: it has ended
	p    []byte
	err  error
	rest io.Reader
}

func (l *late) Read(p []byte) (int, error) {
	if l.next != nil {
		got := <-l.next
		l.next, l.p, l.err = nil, got.p, got.err
	}
	n := copy(p, l.p)
	l.p = l.p[n:]
	switch {
	case n > 0:
		return n, nil
	case l.err != nil:
		return 0, l.err
	case len(p) == 0:
		return 0, nil
	}
	return l.rest.Read(p)
}
