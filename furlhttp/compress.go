package furlhttp

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// ErrBomb is the error of a compressed reply that expands out of proportion.
var ErrBomb = errors.New("the reply expands out of proportion")

// encoded reports whether a reply has a content encoding that furl cannot read.
func encoded(resp *http.Response) bool {
	encoding := resp.Header.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(strings.TrimSpace(encoding), "identity")
}

// decompress has a reply read without its compression, if that is gzip. No
// encoding was asked for, but some servers do not look.
func decompress(resp *http.Response) {
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "gzip", "x-gzip":
		resp.Body = &gunzip{in: resp.Body}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
}

// What a gzip body may expand to: so many bytes, or so many times its own size.
// Repetitive JSON is compressed thirty to one.
const (
	harmless = 16 << 20
	growth   = 100
)

// gunzip decompresses a body as it arrives.
type gunzip struct {
	in       io.ReadCloser
	packed   int64
	unpacked int64
	z        *gzip.Reader
}

// Read returns what was compressed with a flush at once.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(&countedReader{g.in, &g.packed})
		if err == io.EOF && g.packed == 0 {
			return 0, io.EOF
		}
		if err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
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

func (g *gunzip) Close() error { return g.in.Close() }

// countedReader counts what is read.
type countedReader struct {
	io.Reader
	n *int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}
