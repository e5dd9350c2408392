package furlhttp

import (
	"bytes"
	"io"
	"time"
)

// peek reads the beginning of a body until enough reports true, the body ends,
// most bytes are read, or the time is over. It returns a body that begins with
// all that was read; an error is left for whoever reads that. A piece is valid
// during the call of enough.
func peek(body io.ReadCloser, most int, wait time.Duration, enough func(piece []byte) bool) io.ReadCloser {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var read []byte
	buf := make([]byte, 4<<10)
	for {
		// The time may be over during a read, which cannot be interrupted: its
		// result is then the next piece of the body.
		next := make(chan readResult, 1)
		go func() {
			n, err := body.Read(buf)
			next <- readResult{buf[:n], err}
		}()
		select {
		case got := <-next:
			read = append(read, got.p...)
			if stop := len(got.p) > 0 && enough(got.p) || len(read) >= most; stop || got.err != nil {
				return unread(body, read, got.err)
			}
		case <-timer.C:
			rest := &pendingReader{next: next, rest: body}
			return &joined{io.MultiReader(bytes.NewReader(read), rest), body}
		}
	}
}

// readResult is what a read returned.
type readResult struct {
	p   []byte
	err error
}

// pendingReader continues after a read that has not returned yet.
type pendingReader struct {
	next <-chan readResult // nil: it has returned
	p    []byte
	err  error
	rest io.Reader
}

func (r *pendingReader) Read(p []byte) (int, error) {
	if r.next != nil {
		got := <-r.next
		r.next, r.p, r.err = nil, got.p, got.err
	}
	n := copy(p, r.p)
	r.p = r.p[n:]
	switch {
	case n > 0:
		return n, nil
	case r.err != nil:
		return 0, r.err
	case len(p) == 0:
		return 0, nil
	}
	return r.rest.Read(p)
}
