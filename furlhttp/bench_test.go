package furlhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// BenchmarkRelay measures a request with a large body and a streamed reply of 200
// events: to the provider directly, and through a reverse proxy over
// http.DefaultTransport, over package upstream, and over furlhttp, which decodes
// and records it in memory.
func BenchmarkRelay(b *testing.B) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		_, _ = io.WriteString(w, stream[0]+stream[1])
		for range 200 {
			_, _ = io.WriteString(w, stream[2])
			_ = rc.Flush()
		}
		_, _ = io.WriteString(w, strings.Join(stream[4:], ""))
	}))
	defer provider.Close()
	up, err := upstream.New(provider.URL, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer up.Close()
	proxy := func(base http.RoundTripper) http.Handler {
		return &httputil.ReverseProxy{Transport: base, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(provider.URL, "http://")
		}}
	}
	furl := func() http.RoundTripper {
		all, err := session.New(inmem.New(), nil)
		if err != nil {
			b.Fatal(err)
		}
		return furlhttp.New(all, &furlhttp.Options{Base: up})
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":900,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("words ", 57<<10/6) + `"}]}`
	for _, way := range []struct {
		name  string
		proxy func() http.Handler
	}{
		{"direct", nil},
		{"proxy", func() http.Handler { return proxy(http.DefaultTransport) }},
		{"upstream", func() http.Handler { return proxy(up) }},
		{"furlhttp", func() http.Handler { return proxy(furl()) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			to := provider.URL
			if way.proxy != nil {
				h := way.proxy()
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_ = http.NewResponseController(w).EnableFullDuplex() // else the server may close the request's body
					h.ServeHTTP(w, r)
				}))
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
				_ = resp.Body.Close()
			}
		})
	}
}
