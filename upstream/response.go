package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Response is an answer of the provider, its header there, its body to come.
type Response struct {
	Status int
	// Header is as it came, without what concerns one connection, and goes to
	// the client so.
	Header http.Header
	// Encoding is the content encoding of the body where furl cannot read it:
	// it was not asked to understand it, or the provider used one it was not
	// asked for. "" means that the body is plain.
	Encoding string
	// Connect is the time until there was a connection, FirstByte that until
	// the header of the answer was there, both from the beginning.
	Connect, FirstByte time.Duration

	client  *Client
	in      *http.Response
	body    io.Reader
	up      context.Context
	cancel  context.CancelCauseFunc
	stay    func() bool
	idle    *time.Timer
	mu      sync.Mutex
	enders  []*time.Timer
	closed  bool
	readErr error
}

func (c *Client) response(in *http.Response, req *Request, up context.Context, cancel context.CancelCauseFunc) *Response {
	r := &Response{Status: in.StatusCode, Header: incoming(in.Header), client: c, in: in, up: up, cancel: cancel}
	r.idle = time.AfterFunc(c.opts.Idle, func() { cancel(ErrIdle) })
	r.idle.Stop()
	r.body = raw{r}
	if n := in.Header.Get("Content-Length"); n != "" {
		r.Header.Set("Content-Length", n)
	}
	switch encoding := strings.ToLower(strings.TrimSpace(in.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if !req.Understand || req.Method == http.MethodHead {
			r.Encoding = encoding
			break
		}
		r.body = &gunzip{in: raw{r}}
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
	default:
		r.Encoding = encoding
	}
	return r
}

// Events reports whether the body is a stream of server-sent events.
func (r *Response) Events() bool {
	typ, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return typ == "text/event-stream"
}

// Length is the body's length in bytes as the client gets it, -1 if it is not
// known.
func (r *Response) Length() int64 {
	if r.Header.Get("Content-Length") == "" {
		return -1
	}
	return r.in.ContentLength
}

// Read reads the body, decoded if the request asked for that. Its error is
// io.EOF at the end, and otherwise an [*Error].
func (r *Response) Read(p []byte) (int, error) {
	if r.readErr != nil {
		return 0, r.readErr
	}
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		if _, told := errors.AsType[*Error](err); !told { // it was not read before
			err = r.client.fail(StageBody, err, context.Cause(r.up))
		}
	}
	r.readErr = err
	return n, err
}

// Unread puts back what was read, so that the answer can be relayed all the
// same. The bytes must not be changed until it was.
func (r *Response) Unread(body []byte) { r.again(body, r.rest()) }

// raw reads the body as it comes, with an eye on the time.
type raw struct{ r *Response }

func (b raw) Read(p []byte) (int, error) {
	b.r.idle.Reset(b.r.client.opts.Idle)
	n, err := b.r.in.Body.Read(p)
	b.r.idle.Stop()
	return n, err
}

// ReadAll reads the rest of the body, at most Options.MaxBody bytes of it.
func (r *Response) ReadAll() ([]byte, error) {
	most := r.client.opts.MaxBody
	if n := r.in.ContentLength; n > most {
		return nil, r.client.fail(StageBody, fmt.Errorf("%w: %d bytes", ErrTooLarge, n), nil)
	}
	var buf bytes.Buffer
	if n := r.in.ContentLength; n > 0 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r, most+1))
	if err != nil {
		return buf.Bytes(), err
	}
	if n > most {
		return nil, r.client.fail(StageBody, fmt.Errorf("%w: over %d bytes", ErrTooLarge, most), nil)
	}
	return buf.Bytes(), nil
}

// Trailer holds what the provider sent behind the body, once that was read to
// its end.
func (r *Response) Trailer() http.Header { return passOn(r.in.Trailer) }

// Close ends the request. An answer that was not read to its end is cut off at
// the provider's.
func (r *Response) Close() error {
	r.mu.Lock()
	r.closed = true
	for _, t := range r.enders {
		t.Stop()
	}
	r.mu.Unlock()
	r.stay()
	r.idle.Stop()
	err := r.in.Body.Close()
	r.cancel(nil)
	return err
}

// endAfter ends the request with a cause when the time has passed.
func (r *Response) endAfter(d time.Duration, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.enders = append(r.enders, time.AfterFunc(d, func() { r.cancel(cause) }))
	}
}

// What a gzip body may grow to without being a bomb: this much, or this many
// times its own size. Repetitive JSON packs thirty to one.
const (
	harmless = 16 << 20
	growth   = 100
)

// gunzip decodes a body as it comes.
type gunzip struct {
	in        io.Reader
	packed    int64
	unpacked  int64
	z         *gzip.Reader
	something bool // the body is not empty
}

// Read counts what goes in and what comes out. What has been packed with a
// flush comes out at once.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(&counted{g})
		if err == io.EOF && !g.something {
			return 0, io.EOF
		}
		if err != nil {
			return 0, noEnd(err)
		}
		g.z = z
	}
	n, err := g.z.Read(p)
	g.unpacked += int64(n)
	if g.unpacked > harmless && g.unpacked > growth*g.packed {
		return 0, ErrBomb
	}
	return n, err
}

func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// counted is the packed body.
type counted struct{ g *gunzip }

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.g.in.Read(p)
	c.g.packed += int64(n)
	c.g.something = c.g.something || n > 0
	return n, err
}
