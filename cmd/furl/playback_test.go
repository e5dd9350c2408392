package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// C9: furl serve --playback hides nothing, whatever the policy.
func TestC9ServePlayback(t *testing.T) {
	result := strings.Repeat("a line of a file ", 60)
	list := []string{`{"role":"user","content":"Read the files."}`}
	for i := range 9 {
		list = append(list,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"read","input":{"path":"%d"}}]}`, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s%d"}]}`, i, result, i))
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[` + strings.Join(list, ",") + `]}`
	for _, playback := range []bool{false, true} {
		player := sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1}), NoAuth: true, KeepBodies: true})
		provider := httptest.NewServer(player)
		defer provider.Close()
		args := []string{"--anthropic", provider.URL, "--openai", "none", "--policy", "rolling-mask-5"}
		if playback {
			args = append(args, "--playback", "--recall")
		}
		p := serve(t, t.TempDir(), args...)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", "sk-ant-test")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, error %v: %s\n%s", resp.StatusCode, err, reply, p.log())
		}
		sent := string(player.Requests()[0].Body)
		if got := sent == body; got != playback {
			t.Errorf("playback %v: the request is sent unchanged: %v", playback, got)
		}
	}
}
