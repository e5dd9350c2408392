package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// The buffer of a body is used again when its request has ended.
func TestBufferIsKeptAfterTheRequest(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer provider.Close()
	st := newFixture(t, &sim.Options{}, &session.Options{}, nil)
	st.direct = provider
	st.begin(t, st.sessions.Store(), &session.Options{}, nil)
	body := fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("many words ", 350_000))
	before := gateway.KeptBuffers()
	if resp, answer := st.post(t, "/v1/messages", body); resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("status %d: %.200s", resp.StatusCode, answer)
	}
	st.gateway.Wait(t.Context())
	if got := gateway.KeptBuffers() - before; got != 1 {
		t.Errorf("%d buffers are kept, want 1", got)
	}
}
