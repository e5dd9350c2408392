package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// dial returns the function that connects to providers.
func dial(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// conn is a connection that sends a body from memory as it is. That of package net copies
// it in pieces, with a new buffer for each request.
type conn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom. http.Transport calls it with the rest of a body, limited
// to its length.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if body, ok := l.R.(*Body); ok && int64(body.Len()) <= l.N {
			n, err := body.WriteTo(c.TCPConn)
			l.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// Body is the body of a request in memory. It is sent without a copy over a connection
// that is not encrypted.
type Body struct {
	bytes.Reader
	unread *atomic.Int32 // nil: not counted, or read to the end
}

// NewBody returns a body of these bytes. They are used until the body was read to its end,
// which may be after the response. unread, if not nil, counts the bodies of which this is not
// so yet.
func NewBody(b []byte, unread *atomic.Int32) *Body {
	var body Body
	if body.Reset(b); len(b) > 0 && unread != nil {
		body.unread = unread
		unread.Add(1)
	}
	return &body
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	defer b.wasRead()
	return b.Reader.Read(p)
}

// WriteTo implements io.WriterTo.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	defer b.wasRead()
	return b.Reader.WriteTo(w)
}

func (b *Body) wasRead() {
	if b.unread != nil && b.Len() == 0 {
		b.unread.Add(-1)
		b.unread = nil
	}
}

// Close implements io.Closer.
func (*Body) Close() error { return nil }
