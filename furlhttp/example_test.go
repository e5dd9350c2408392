package furlhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// One line gives a program that talks to a model through an http.Client
// sessions that never overflow. The client goes into the provider's SDK.
func Example() {
	provider := httptest.NewServer(sim.New(&sim.Options{NoAuth: true}))
	defer provider.Close()

	all, err := session.New(inmem.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: furlhttp.New(all, nil)}

	body := `{"model":"gpt-4.1","messages":[{"role":"user","content":"Say hello."}]}`
	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		fmt.Println(err)
		return
	}

	for info, err := range all.List(resp.Request.Context(), storage.SessionQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q has %d messages\n", info.Title, info.Messages)
	}
	// Output: "Say hello." has 2 messages
}
