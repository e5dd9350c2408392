package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// runAgent is an agent for scripts. It sends requests to $ANTHROPIC_BASE_URL until the
// model calls no more tools, answers each call with sixty lines, and prints the
// outcome.
func runAgent() int {
	type block struct {
		Type string          `json:"type"`
		ID   string          `json:"id,omitempty"`
		Text string          `json:"text,omitempty"`
		Name string          `json:"name,omitempty"`
		In   json.RawMessage `json:"input,omitempty"`
	}
	history := []any{map[string]any{"role": "user", "content": "Look at everything there is."}}
	for step := range 200 {
		body, err := json.Marshal(map[string]any{
			"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": history,
			"tools": []any{map[string]any{"name": "bash", "input_schema": map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}}},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		req, err := http.NewRequest("POST", os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", bytes.NewReader(body))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		req.Header.Set("X-Api-Key", "planted-secret-key")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			fmt.Printf("step %d: %d %s\n", step, resp.StatusCode, answer)
			return 3
		}
		var reply struct {
			Content []block `json:"content"`
		}
		if err := json.Unmarshal(answer, &reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		history = append(history, map[string]any{"role": "assistant", "content": reply.Content})
		var results []any
		for _, b := range reply.Content {
			if b.Type == "tool_use" {
				text := strings.Repeat(b.ID+" prints a line about pkg/config.go and more\n", 60)
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": b.ID, "content": text})
			}
		}
		if results == nil {
			fmt.Printf("done after %d steps\n", step)
			return 0
		}
		history = append(history, map[string]any{"role": "user", "content": results})
	}
	return 2
}
