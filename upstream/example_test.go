package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"

	"github.com/furlhq/furl/upstream"
)

// A reverse proxy that sends requests to a provider.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "for %s at %s", r.Header.Get("X-Api-Key"), r.URL)
	}))
	defer provider.Close()
	client, err := upstream.New(provider.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	proxy := &httputil.ReverseProxy{Transport: client, Rewrite: func(*httputil.ProxyRequest) {}}

	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/messages?beta=true", strings.NewReader(`{}`))
	r.Header.Set("X-Api-Key", "me")
	proxy.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	fmt.Println(w.Code, string(body), err)
	// Output: 200 for me at /v1/messages?beta=true <nil>
}
