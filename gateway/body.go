package gateway

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
)

// statusError is a failure with the status that tells the client of it.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func refusalOf(err error) *furl.Refusal {
	status := http.StatusBadRequest
	if e, ok := errors.AsType[*statusError](err); ok {
		status = e.status
	}
	return &furl.Refusal{Status: status, Message: "furl: " + err.Error()}
}

// maxAhead is how much room is made for a body before any of it is there,
// whatever the client says of its length. Clients that say much and send
// nothing are many at once, and cost little.
const maxAhead = 16 << 10

// readAll is io.ReadAll with room for a body of so many bytes, -1 if nobody
// knows. Room is made for eight times what is there, so that not much more is
// copied than there is.
func readAll(in io.Reader, length int64) ([]byte, error) {
	body := make([]byte, 0, min(max(length, 0), maxAhead)+bytes.MinRead)
	for {
		if len(body) == cap(body) {
			room := 2 * int64(cap(body))
			if left := length - int64(len(body)); left > 0 {
				room = int64(len(body)) + min(left+bytes.MinRead, 7*int64(cap(body)))
			}
			body = append(make([]byte, 0, room), body...)
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}

// read reads a request's body whole, decoded, and returns the headers to send
// with it. Its bytes stay acquired from g.bodies until the call is over. A large
// one whose length is known waits for room when its first bytes are there.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request) (body []byte, header http.Header, err error) {
	if r.ContentLength > g.o.MaxBody {
		return nil, nil, tooLarge(g.o.MaxBody)
	}
	counted := &counted{budget: g.bodies, reserve: func(n int64) error { return g.acquire(r.Context(), g.bodies, n) }}
	if r.Header.Get("Content-Encoding") == "" {
		counted.length = r.ContentLength
	}
	callOf(r.Context()).finally(counted.release)
	header = r.Header.Clone()
	r.Body = g.paced(w, r)
	in := io.Reader(http.MaxBytesReader(w, r.Body, g.o.MaxBody))
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, unreadable(fmt.Errorf("the body is no gzip: %w", err))
		}
		in = z
		header.Del("Content-Encoding")
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(uint64(g.o.MaxBody)), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, fmt.Errorf("the body is no zstd: %w", err)
		}
		defer z.Close()
		in = z
		header.Del("Content-Encoding")
	default:
		return nil, nil, &statusError{http.StatusUnsupportedMediaType, fmt.Errorf("the body is encoded as %q; gzip, zstd and none are understood", encoding)}
	}
	counted.Reader = in
	body, err = readAll(io.LimitReader(counted, g.o.MaxBody+1), r.ContentLength)
	if err == nil && int64(len(body)) > g.o.MaxBody {
		err = tooLarge(g.o.MaxBody)
	}
	if err != nil {
		return nil, nil, unreadable(err)
	}
	return body, header, nil
}

func tooLarge(max int64) error {
	return &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("%w: more than %d bytes", errTooLarge, max)}
}

// unreadable gives the failure of reading a body its status.
func unreadable(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	switch {
	case errors.Is(err, errTooSlow):
		return &statusError{http.StatusRequestTimeout, errTooSlow}
	case errors.Is(err, membudget.ErrBusy):
		return &statusError{http.StatusServiceUnavailable, errNoMemory}
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return &statusError{http.StatusRequestEntityTooLarge, errTooLarge}
	}
	if _, ok := errors.AsType[*statusError](err); ok {
		return err
	}
	return fmt.Errorf("read the body: %w", err)
}
