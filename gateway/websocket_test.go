package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/sim"
)

// A client that would speak by WebSocket is told at once not to; without, what
// is asked for at these paths is the provider's to answer.
func TestNoWebSocket(t *testing.T) {
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{})
	for _, tc := range []struct {
		path, upgrade string
		want          int
	}{
		{"/v1/responses", "websocket", http.StatusUpgradeRequired},
		{"/responses", "WebSocket", http.StatusUpgradeRequired},
		{"/openai/v1/responses", "websocket", http.StatusUpgradeRequired},
		{"/v1/chat/completions", "websocket", http.StatusUpgradeRequired},
		{"/v1/messages", "websocket", http.StatusUpgradeRequired},
		{"/v1/responses", "", http.StatusMethodNotAllowed},
	} {
		before := len(st.sim.Requests())
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, st.front.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		if tc.upgrade != "" {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", tc.upgrade)
		}
		resp, err := st.front.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.want || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s, upgrade %q: %s %s, want %d", tc.path, tc.upgrade, resp.Status, resp.Header.Get("Content-Type"), tc.want)
		}
		if reached := len(st.sim.Requests()) > before; reached != (tc.upgrade == "") {
			t.Errorf("%s, upgrade %q: it reached the provider: %t", tc.path, tc.upgrade, reached)
		}
	}
}
