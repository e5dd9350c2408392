// Command onerequest sends a conversation's first four requests through a
// gateway, and writes which functions the fourth ran. Build it with -cover
// -covermode=atomic -coverpkg=./...; its argument is the folder to write to.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/coverage"
	"strings"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "onerequest:", err)
		os.Exit(1)
	}
}

// The fourth of a conversation, no stream, nothing hidden.
func run(dir string) error {
	sessions, err := session.New(inmem.New(), nil)
	if err != nil {
		return err
	}
	up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: provider{}})
	if err != nil {
		return err
	}
	defer up.Close()
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
	if err != nil {
		return err
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":32000,"system":"You are an agent.","messages":[{"role":"user","content":"Go on."}`
	for n := 1; n <= 4; n++ {
		if n == 4 {
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
		}
		if err := send(g, body+"]}", n); err != nil {
			return err
		}
		body += fmt.Sprintf(`,{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"package a"}]}`, answer(n), n)
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}

func send(g *gateway.Gateway, body string, n int) error {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(body))
	r.Header.Set("X-Api-Key", "key")
	r.Header.Set("X-Step", fmt.Sprint(n))
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("X-Furl-Session") == "" {
		return fmt.Errorf("request %d: status %d, %s", n, w.Code, bytes.TrimSpace(w.Body.Bytes()))
	}
	g.Wait(context.Background())
	return nil
}

// provider answers with a tool call.
type provider struct{}

func (provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	var n int
	if _, err := fmt.Sscan(r.Header.Get("X-Step"), &n); err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":%s,"stop_reason":"tool_use","usage":{"input_tokens":%d,"output_tokens":20}}`, n, answer(n), 100*n)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

func answer(n int) string {
	return fmt.Sprintf(`[{"type":"text","text":"Reading."},{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/src/file_%d.go"}}]`, n, n)
}
