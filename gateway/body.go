package gateway

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
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

// read reads a request's body whole, decoded, and gives the headers that go on
// with it.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request) ([]byte, http.Header, error) {
	header := r.Header.Clone()
	in := io.Reader(http.MaxBytesReader(w, r.Body, g.o.MaxBody))
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("the body is no gzip: %w", err)
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
	body, err := io.ReadAll(io.LimitReader(in, g.o.MaxBody+1))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || int64(len(body)) > g.o.MaxBody {
		return nil, nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", g.o.MaxBody)}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the body: %w", err)
	}
	return body, header, nil
}
