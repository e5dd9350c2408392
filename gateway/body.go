package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
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

	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
)

// statusError is an error with the HTTP status of its response.
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

// readAll is io.ReadAll for a body of known length; -1 means unknown. It reads into
// pieces that other requests use again, so memory follows the bytes received, whatever
// Content-Length says, and the body is allocated once. Only the start of a larger body
// is read in pieces, because memory for the rest is reserved then.
func readAll(in io.Reader, length int64) ([]byte, error) {
	body, err := readPieces(in, length)
	for err == nil {
		if len(body) == cap(body) {
			room := 2 * int64(cap(body))
			if left := length - int64(len(body)); left > 0 {
				room = int64(len(body)) + min(left+bytes.MinRead, (maxGrowth-1)*int64(cap(body)))
			}
			body = append(newBuffer(int(room)), body...)
		}
		var n int
		n, err = in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
	}
	if err == io.EOF {
		err = nil
	}
	return body, err
}

// maxGrowth is how many times as large the memory for a body becomes at once, at most.
const maxGrowth = 8

// readPieces reads up to reserveAfter bytes of a body, and returns them with room for more.
// The error is that of the reader, nil if there may be more.
func readPieces(in io.Reader, length int64) ([]byte, error) {
	pieces := make([][]byte, 0, reserveAfter/len(piece{}))
	defer func() {
		for _, p := range pieces {
			bufferPool.Put((*piece)(p[:len(piece{})]))
		}
	}()
	for len(pieces) < cap(pieces) {
		buf, n := bufferPool.Get().(*piece), 0
		var err error
		for n < len(buf) && err == nil {
			var read int
			read, err = in.Read(buf[n:])
			n += read
		}
		pieces = append(pieces, buf[:n])
		if err != nil {
			return joined(pieces, len(buf)*(len(pieces)-1)+n), err
		}
	}
	room := int64(2 * reserveAfter)
	if length > reserveAfter {
		room = min(length, maxGrowth*reserveAfter) + bytes.MinRead
	}
	return joined(pieces, int(room)), nil
}

// joined returns the bytes of pieces, with room for n bytes in all.
func joined(pieces [][]byte, n int) []byte {
	body := newBuffer(n)
	for _, p := range pieces {
		body = append(body, p...)
	}
	return body
}

// receivedBody is the body of a request.
type receivedBody struct {
	data   []byte      // without its content encoding
	header http.Header // to send with data
	// packed is the body as received, and encoding its content encoding. They are
	// empty without one.
	packed   []byte
	encoding string
}

// readBody returns the whole body of a request. Its memory stays acquired from
// g.bodyMemory until the call ends. A large body of known length waits for memory
// once its first bytes have arrived.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (*receivedBody, error) {
	if r.ContentLength > g.o.MaxBody {
		return nil, tooLarge(g.o.MaxBody)
	}
	encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	switch encoding {
	case "identity":
		encoding = ""
	case "", "gzip", "zstd":
	default:
		return nil, &statusError{http.StatusUnsupportedMediaType, fmt.Errorf("unsupported Content-Encoding %q: expected gzip, zstd or none", encoding)}
	}
	r.Body = g.newPacedBody(w, r)
	body := &receivedBody{header: maps.Clone(r.Header)}
	var err error
	if body.data, err = g.readWhole(r.Context(), http.MaxBytesReader(w, r.Body, g.o.MaxBody), r.ContentLength); err != nil {
		return nil, bodyError(err)
	}
	if encoding == "" {
		return body, nil
	}
	body.packed, body.encoding = body.data, encoding
	body.header.Del("Content-Encoding")
	if body.data, err = g.unpack(r.Context(), body.packed, encoding); err != nil {
		return nil, bodyError(err)
	}
	return body, nil
}

// readWhole reads up to Options.MaxBody bytes, and acquires the memory for them until
// the call ends. length is that of the whole if it is known, else 0 or less.
func (g *Gateway) readWhole(ctx context.Context, in io.Reader, length int64) ([]byte, error) {
	budgeted := &budgetedReader{Reader: in, budget: g.bodyMemory, length: length, reserve: func(n int64) error { return g.acquire(ctx, g.bodyMemory, n) }}
	callOf(ctx).onEnd(budgeted.release)
	data, err := readAll(io.LimitReader(budgeted, g.o.MaxBody+1), length)
	if err == nil && int64(len(data)) > g.o.MaxBody {
		err = tooLarge(g.o.MaxBody)
	}
	callOf(ctx).buffers = append(callOf(ctx).buffers, data)
	return data, err
}

// zstdWindow is the smallest window of a decoder, in bytes. A frame may have a window
// as large as the first one's.
const zstdWindow = 2 << 20

// unpack returns a compressed body without its content encoding.
func (g *Gateway) unpack(ctx context.Context, packed []byte, encoding string) ([]byte, error) {
	if encoding == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("invalid gzip: %w", err)
		}
		// A gzip stream ends with the length of its content, modulo 2³².
		length := int64(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
		return g.readWhole(ctx, z, min(length, g.o.MaxBody+1))
	}
	var first zstd.Header // its sizes are only what the client says
	if err := first.Decode(packed); err != nil {
		return nil, fmt.Errorf("invalid zstd: %w", err)
	}
	size := int64(min(first.FrameContentSize, uint64(g.o.MaxBody+1))) // 0: unknown
	declared := first.WindowSize
	if first.SingleSegment {
		declared = first.FrameContentSize
	}
	window := min(max(declared, zstdWindow), uint64(g.o.MaxBody))
	// The decoder allocates the window in addition to the body.
	if err := g.acquire(ctx, g.bodyMemory, int64(window)); err != nil {
		return nil, err
	}
	defer g.bodyMemory.Release(int64(window))
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxMemory(uint64(g.o.MaxBody)), zstd.WithDecoderMaxWindow(window),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("invalid zstd: %w", err)
	}
	defer z.Close()
	return g.readWhole(ctx, z, size)
}

// request returns a request with a body to send, as the client has compressed it if furl
// has changed nothing in it, and without furl's headers. unread counts the bodies that are not
// read to their end yet.
func (b *receivedBody) request(r *http.Request, body []byte, unread *atomic.Int32) *http.Request {
	out := *r
	out.Header = make(http.Header, len(r.Header)+1)
	for name, values := range r.Header {
		if !strings.HasPrefix(name, "X-Furl-") {
			out.Header[name] = values
		}
	}
	if b.encoding != "" && bytes.Equal(body, b.data) {
		body = b.packed
		out.Header.Set("Content-Encoding", b.encoding)
	}
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return upstream.NewBody(body, unread), nil }
	out.Body, _ = out.GetBody()
	return &out
}

func tooLarge(max int64) error {
	return &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("%w of %d bytes", errTooLarge, max)}
}

// bodyError returns a read error of a body with its HTTP status.
func bodyError(err error) error {
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
	return fmt.Errorf("read request body: %w", err)
}

// A request body must arrive at this rate after the grace period.
const (
	bodyGrace = 30 * time.Second
	bodyPace  = 16 << 10 // bytes per second
)

var (
	errTooSlow  = errors.New("request body timed out")
	errTooLarge = errors.New("request body exceeds the gateway's limit")
)

// pacedBody is a request body that must arrive at a minimum rate.
type pacedBody struct {
	io.ReadCloser
	rc       *http.ResponseController
	start    time.Time
	grace    time.Duration
	n        int64
	timedOut atomic.Bool
}

func (g *Gateway) newPacedBody(w http.ResponseWriter, r *http.Request) *pacedBody {
	return &pacedBody{ReadCloser: r.Body, rc: http.NewResponseController(w), start: time.Now(), grace: g.o.BodyGrace}
}

func (p *pacedBody) Read(b []byte) (int, error) {
	// Writers without deadlines are bounded by the server's timeouts.
	_ = p.rc.SetReadDeadline(p.start.Add(p.grace + time.Duration(p.n)*time.Second/bodyPace))
	n, err := p.ReadCloser.Read(b)
	switch p.n += int64(n); {
	case err == io.EOF:
		_ = p.rc.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The deadline stays set, so that nothing waits for the rest.
		p.timedOut.Store(true)
		err = errTooSlow
	}
	return n, err
}

// Memory of all requests in flight, in bytes: their bodies, and their decoded
// form (package membudget). A request waits for memory up to Options.MemoryWait,
// then it is refused with status 503. Together with the sessions in memory
// (session.Options.MaxMemory) and the program itself, this keeps a gateway below
// 1.5 GB.
const (
	maxBodies  = 192 << 20
	maxDecoded = 448 << 20
	memoryWait = 30 * time.Second
	maxWaiting = 1024 // requests
)

var errNoMemory = errors.New("out of memory for requests: retry when fewer are in flight")

// acquire acquires n bytes from a budget, and waits for them up to
// Options.MemoryWait. The error is a statusError, membudget.ErrTooLarge or the
// error of ctx.
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

// maxParts is the largest number of messages and blocks in a request that furl
// decodes. The longest sessions have a few thousand.
const maxParts = 50_000

// reserveDecoded acquires n bytes of memory for the decoded form of a request until
// its call ends. The error wraps clients.ErrTooLarge if the request has more than maxParts
// parts or would need more than the whole budget.
func (g *Gateway) reserveDecoded(ctx context.Context, n int64, parts int) error {
	if parts > maxParts {
		return clients.ErrTooLarge
	}
	switch err := g.acquire(ctx, g.decodedMemory, n); {
	case errors.Is(err, membudget.ErrTooLarge):
		return clients.ErrTooLarge
	case err != nil:
		return err
	}
	callOf(ctx).onEnd(func() { g.decodedMemory.Release(n) })
	return nil
}

// tryReserveDecoded is reserveDecoded for a bypassed request, which is sent anyway: it
// does not wait. It returns false if there is nothing to look at, too.
func (g *Gateway) tryReserveDecoded(ctx context.Context, body []byte) bool {
	if !bytes.Contains(body, []byte("image")) {
		return false
	}
	n, parts := clients.MemoryOf(body)
	if parts > maxParts || !g.decodedMemory.TryAcquire(n) {
		return false
	}
	callOf(ctx).onEnd(func() { g.decodedMemory.Release(n) })
	return true
}

// reserveAfter is how many bytes of a body must have arrived before memory for the
// rest is reserved. So a client that announces a body and never sends it holds
// no memory.
const reserveAfter = 1 << 20

// budgetedReader is a body that acquires memory from a budget while it is read.
type budgetedReader struct {
	io.Reader
	budget      *membudget.Budget
	reserve     func(n int64) error // waits
	length      int64               // of the whole body; 0 or less if unknown
	reserved, n int64
}

func (c *budgetedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	more := c.n - c.reserved
	switch {
	case more <= 0:
	case c.n > reserveAfter && c.length > c.n: // at most once, since it reserves the rest
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

// release releases the memory of the body.
func (c *budgetedReader) release() { c.budget.Release(c.reserved) }

// The rest of a request body is read and discarded after the response, up to
// these limits. Most clients send the whole request before they read: without
// this they would see a broken connection instead of the response.
const (
	maxDrain  = 256 << 20
	drainTime = 30 * time.Second
)

// trackedBody is a request body that records whether it was read to its end.
type trackedBody struct {
	io.ReadCloser
	begun, ended atomic.Bool
}

func (u *trackedBody) Read(b []byte) (int, error) {
	u.begun.Store(true)
	n, err := u.ReadCloser.Read(b)
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// serveAndDrain calls serve with the request and drains its body afterwards.
// Refusals fit into the server's buffer, so they reach the client when serveAndDrain
// returns. The slot and the memory of the request are released before that.
func serveAndDrain(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor > 1 {
		serve(w, r) // HTTP/2 clients read while they write
		return
	}
	body := &trackedBody{ReadCloser: r.Body}
	again := *r
	again.Body = body
	serve(w, &again)
	switch {
	case body.ended.Load(), r.ContentLength > maxDrain:
		return
	case !body.begun.Load() && r.Header.Get("Expect") != "":
		return // the client waits for the response before it sends the body
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(drainTime)) // not every writer supports deadlines
	if n, err := io.CopyN(io.Discard, body.ReadCloser, maxDrain); err == io.EOF && n < maxDrain {
		_ = rc.SetReadDeadline(time.Time{})
	}
}
