package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/furlhq/furl/upstream"
)

// watcher counts what goes by.
type watcher struct{ bytes int }

func (w *watcher) Chunk(p []byte) { w.bytes += len(p) }
func (w *watcher) End(err error)  { fmt.Println("observed", w.bytes, "bytes,", err) }

// A handler that sends requests on and relays the answers.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: for "+r.Header.Get("X-Api-Key")+"\n\n")
	}))
	defer provider.Close()
	client, err := upstream.New(provider.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		resp, err := client.Do(r.Context(), &upstream.Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Understand: true})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Close()
		relayed, err := client.Relay(w, resp, new(watcher))
		if err != nil {
			panic(http.ErrAbortHandler) // cut off, so that the client knows
		}
		<-relayed.Observed
	}

	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(`{}`))
	r.Header.Set("X-Api-Key", "me")
	handler(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	// Output:
	// observed 14 bytes, <nil>
	// 200 data: for me
}
