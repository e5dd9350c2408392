package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/wire/anthropic"
)

// BenchmarkRelay measures a request with a large body and a streamed answer of
// 200 events: to the provider directly, through the standard library's proxy,
// and through Relay, with nobody watching and with the answer understood.
func BenchmarkRelay(b *testing.B) {
	one := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then\"}}\n\n"
	start := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", sse.ContentType)
		rc := http.NewResponseController(w)
		io.WriteString(w, start)
		for range 200 {
			io.WriteString(w, one)
			rc.Flush()
		}
	}))
	defer provider.Close()
	base, err := url.Parse(provider.URL)
	if err != nil {
		b.Fatal(err)
	}
	through := func(understand bool) http.Handler {
		c, err := New(provider.URL, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			resp, err := c.Do(r.Context(), &Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Understand: true})
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Close()
			var o Observer
			if understand {
				o = Understand(anthropic.Codec, resp, func(*furl.Reply, error) {})
			}
			relayed, err := c.Relay(w, resp, o)
			if err != nil {
				b.Error(err)
			}
			<-relayed.Observed
		})
	}
	reverse := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
	proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else now and then the server closes the request's body under it.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			b.Error(err)
		}
		reverse.ServeHTTP(w, r)
	})
	body := strings.Repeat("x", 57<<10)
	for _, way := range []struct {
		name    string
		handler http.Handler
	}{{"direct", nil}, {"proxy", proxy}, {"relay", through(false)}, {"understood", through(true)}} {
		b.Run(way.name, func(b *testing.B) {
			to := provider.URL
			if way.handler != nil {
				s := httptest.NewServer(way.handler)
				defer s.Close()
				to = s.URL
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := http.Post(to+"/v1/messages", "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
