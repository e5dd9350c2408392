package mcptool

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// httpClient returns the client for a server's address.
func httpClient(s *Server) *http.Client {
	return &http.Client{
		Transport: &bounded{base: http.DefaultTransport, header: s.Header, limit: int64(maxMessage(s))},
		// The headers have keys, which another host must not get.
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
				return errors.New("the server redirects to another address; set that one as the URL")
			}
			if len(via) > 5 {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// bounded adds headers to requests and limits the size of responses.
type bounded struct {
	base   http.RoundTripper
	header http.Header
	limit  int64
}

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, values := range b.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := b.base.RoundTrip(req)
	// The events of a stream have a limit each.
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &boundedBody{resp.Body, b.limit}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the server sent more than the limit of a message")
	}
	return n, err
}
