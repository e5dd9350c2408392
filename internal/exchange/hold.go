package exchange

import (
	"bytes"
	"io"
	"time"
)

// holdBack reads the beginning of a body until enough returns true, the body ends,
// most bytes are read, or wait has passed. It returns a body that starts with the
// bytes read, followed by the read error, if any. enough must not retain piece.
func holdBack(body io.ReadCloser, most int, wait time.Duration, enough func(piece []byte) bool) io.ReadCloser {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var read []byte
	buf := make([]byte, 4<<10)
	for {
		// A read cannot be interrupted when the time is up. Its result is then
		// the next piece of the body.
		next := make(chan readResult, 1)
		go func() {
			n, err := body.Read(buf)
			next <- readResult{buf[:n], err}
		}()
		select {
		case got := <-next:
			read = append(read, got.p...)
			if stop := len(got.p) > 0 && enough(got.p) || len(read) >= most; stop || got.err != nil {
				return withPrefix(body, read, got.err)
			}
		case <-timer.C:
			rest := &pendingReader{next: next, rest: body}
			return &splitBody{io.MultiReader(bytes.NewReader(read), rest), body}
		}
	}
}

// readResult is the result of a read.
type readResult struct {
	p   []byte
	err error
}

// pendingReader continues after a read that has not returned yet.
type pendingReader struct {
	next <-chan readResult // nil after its result was received
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

// splitBody is a body with separate reader and closer.
type splitBody struct {
	io.Reader
	io.Closer
}
