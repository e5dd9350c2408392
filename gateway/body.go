package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// statusError is a failure with the status that tells the client of it.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func refusalOf(err error) *protocol.Refusal {
	status := http.StatusBadRequest
	if e, ok := errors.AsType[*statusError](err); ok {
		status = e.status
	}
	return &protocol.Refusal{Status: status, Message: "furl: " + err.Error()}
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
	header = maps.Clone(r.Header)
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

// A request's body must arrive at this pace, after a period of grace.
const (
	bodyGrace = 30 * time.Second
	bodyPace  = 16 << 10 // bytes per second
)

var (
	errTooSlow  = errors.New("the body did not come in time")
	errTooLarge = errors.New("the body is larger than this gateway takes")
)

// paced reads a body that has to come at a pace.
type paced struct {
	io.ReadCloser
	rc    *http.ResponseController
	begun time.Time
	grace time.Duration
	n     int64
	late  atomic.Bool // it did not come in time
}

func (g *Gateway) paced(w http.ResponseWriter, r *http.Request) *paced {
	return &paced{ReadCloser: r.Body, rc: http.NewResponseController(w), begun: time.Now(), grace: g.o.BodyGrace}
}

func (p *paced) Read(b []byte) (int, error) {
	// Not every writer has deadlines; the server's own limits hold then.
	_ = p.rc.SetReadDeadline(p.begun.Add(p.grace + time.Duration(p.n)*time.Second/bodyPace))
	n, err := p.ReadCloser.Read(b)
	switch p.n += int64(n); {
	case err == io.EOF:
		_ = p.rc.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The deadline stays: nobody is to wait for the rest.
		p.late.Store(true)
		err = errTooSlow
	}
	return n, err
}

// The memory of all requests under way together, in bytes: their bodies as
// they were sent, and what they become once they are decoded (package
// membudget). A request waits for room, up to Options.MemoryWait; then it is refused with
// 503. Together with the sessions in memory (session.Options.MaxMemory) and
// the program itself this keeps a gateway below 1.5 GB.
const (
	maxBodies  = 192 << 20
	maxDecoded = 448 << 20
	memoryWait = 30 * time.Second
	maxWaiting = 1024 // requests
)

var errNoMemory = errors.New("the requests under way use all the memory there is for them; try again")

// acquire takes n bytes of a budget, and waits for them up to Options.MemoryWait.
// The error has the status to answer with, or is membudget.ErrTooLarge or that
// of ctx.
func (g *Gateway) acquire(ctx context.Context, budget *membudget.Budget, n int64) error {
	waiting, cancel := context.WithTimeout(ctx, g.o.MemoryWait)
	defer cancel()
	err := budget.Acquire(waiting, n)
	switch {
	case err == nil, ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, membudget.ErrTooLarge):
		return err
	}
	return &statusError{http.StatusServiceUnavailable, errNoMemory}
}

// decodable acquires the memory that a request takes once it is decoded, until
// its call is over. It reports false if the request has more parts than furl
// deals with, or would take more memory than there is for all.
func (g *Gateway) decodable(ctx context.Context, body []byte) (bool, error) {
	n, parts := memoryOf(body)
	if parts > maxParts {
		return false, nil
	}
	switch err := g.acquire(ctx, g.decoded, n); {
	case errors.Is(err, membudget.ErrTooLarge):
		return false, nil
	case err != nil:
		return false, err
	}
	callOf(ctx).finally(func() { g.decoded.Release(n) })
	return true, nil
}

// aheadOf is how many bytes of a body are read before room for the rest is
// reserved: clients that announce a body and never send it hold no memory.
const aheadOf = 1 << 20

// counted acquires the bytes of a body while they are read.
type counted struct {
	io.Reader
	budget      *membudget.Budget
	reserve     func(n int64) error // waits
	length      int64               // of all of it, 0 or less if unknown
	reserved, n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	more := c.n - c.reserved
	switch {
	case more <= 0:
	case c.n > aheadOf && c.length > c.n: // once: then all of it is reserved
		if err := c.reserve(c.length - c.reserved); err != nil {
			return n, err
		}
		c.reserved = c.length
	case !c.budget.TryAcquire(more):
		return n, membudget.ErrBusy
	default:
		c.reserved += more
	}
	return n, err
}

// release gives back what the body has acquired.
func (c *counted) release() { c.budget.Release(c.reserved) }

// maxParts is the most messages and blocks of a request that furl deals with,
// together. The longest sessions have some thousands.
const maxParts = 50_000

// memoryOf estimates the memory that a request takes once it is decoded, and
// reports how many messages, blocks and tools it has, or a few more. It counts
// what a decoder would make a part of, whether that is valid or not.
func memoryOf(body []byte) (bytes int64, parts int) {
	values := rawjson.CountValues(body)
	if membudget.Request(0, values, values) <= roughly {
		return membudget.Request(len(body), values, values), values
	}
	r := rawjson.NewReader(body)
	if r.Kind() == '{' {
		for name := range r.Fields() {
			switch string(name) {
			case "messages", "input", "tools", "system":
				parts += elements(r, 0)
			}
		}
	}
	return membudget.Request(len(body), parts, values), parts
}

// roughly is how much memory the values of a request may seem to need before
// its parts among them are counted.
const roughly = 16 << 20

// elements counts the elements of a list, and those of the lists in its elements.
func elements(r *rawjson.Reader, depth int) (n int) {
	if r.Kind() != '[' || depth > 2 {
		return 0
	}
	for range r.Elements() {
		if n++; r.Kind() != '{' {
			continue
		}
		for range r.Fields() {
			n += elements(r, depth+1)
		}
	}
	return n
}

// What a client still sends of a request that was answered already is read and
// thrown away, within these bounds. Most clients write all of a request before
// they read anything: they would see a broken connection instead of the answer.
const (
	maxDrain  = 256 << 20
	drainTime = 30 * time.Second
)

// unread is a request's body that knows whether all of it was read.
type unread struct {
	io.ReadCloser
	begun, ended atomic.Bool
}

func (u *unread) Read(b []byte) (int, error) {
	u.begun.Store(true)
	n, err := u.ReadCloser.Read(b)
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// withDrain calls serve with the request, and drains its body afterwards. The
// answer reaches the client when withDrain returns, since refusals fit into the
// server's buffer. The request has given back its slot and its memory before.
func withDrain(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor > 1 {
		serve(w, r) // HTTP/2 clients read while they write
		return
	}
	body := &unread{ReadCloser: r.Body}
	again := *r
	again.Body = body
	serve(w, &again)
	switch {
	case body.ended.Load(), r.ContentLength > maxDrain:
		return
	case !body.begun.Load() && r.Header.Get("Expect") != "":
		return // it waits for the answer before it sends anything
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(drainTime)) // not every writer has deadlines
	if n, err := io.CopyN(io.Discard, body.ReadCloser, maxDrain); err == io.EOF && n < maxDrain {
		_ = rc.SetReadDeadline(time.Time{})
	}
}
