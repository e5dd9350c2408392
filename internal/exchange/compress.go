package exchange

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// ErrBomb is the error of a compressed reply whose decompressed size is out of
// proportion.
var ErrBomb = errors.New("decompressed reply too large in proportion to its compressed size")

// hasEncoding reports whether a reply has a content encoding that furl cannot read.
func hasEncoding(resp *http.Response) bool {
	encoding := resp.Header.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(strings.TrimSpace(encoding), "identity")
}

// decompress makes the body of a gzip-compressed reply return decompressed data.
// furl requests no compression, but some servers ignore Accept-Encoding.
func decompress(resp *http.Response) {
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "gzip", "x-gzip":
		resp.Body = &gunzip{in: resp.Body}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
}

// Limits of a decompressed body: harmless bytes, or growth times the compressed
// size if that is more. Repetitive JSON compresses about thirty to one.
const (
	minBombSize = 16 << 20
	maxRatio    = 100
)

// gunzip decompresses a body as it arrives.
type gunzip struct {
	in       io.ReadCloser
	packed   int64
	unpacked int64
	z        *gzip.Reader
}

// Read returns data as soon as the server has flushed it.
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
	if g.unpacked > minBombSize && g.unpacked > maxRatio*g.packed {
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
