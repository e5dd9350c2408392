package gateway

import (
	"io"
	"net/http"
	"time"

	"github.com/furlhq/furl/wire"
)

// relay sends a provider's response to the client: the header before the body has begun,
// each piece of a stream as it arrives, and the trailers. If the response is cut off, it
// closes the client's connection.
func (g *Gateway) relay(w *statusWriter, resp *http.Response) {
	g.prepare(w)
	defer func() { _ = w.control().SetWriteDeadline(time.Time{}) }()
	h := w.Header()
	for name, values := range resp.Header {
		h[name] = append(h[name], values...)
	}
	announced := len(resp.Trailer)
	for name := range resp.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(resp.StatusCode)
	streams := resp.ContentLength < 0 || wire.IsStream(resp.Header.Get("Content-Type"))
	if streams {
		_ = w.control().Flush() // not every writer supports it
	}
	if err := copyBody(w, resp.Body, streams); err != nil {
		_ = resp.Body.Close()
		panic(http.ErrAbortHandler)
	}
	_ = resp.Body.Close() // before the trailers are read
	if len(resp.Trailer) == 0 {
		return
	}
	_ = w.control().Flush() // otherwise a short body would get a length in place of trailers
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = append(h[name], values...)
	}
}

// copyBody copies a body to the client. If flush is set, each piece is sent at once.
func copyBody(w *statusWriter, body io.Reader, flush bool) error {
	buf := bufferPool.Get().(*piece)
	defer bufferPool.Put(buf)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			if _, failed := w.Write(buf[:n]); failed != nil {
				return failed
			}
			if flush {
				_ = w.control().Flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
