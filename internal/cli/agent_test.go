package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// runAgent is an agent for scripts. It sends requests to $ANTHROPIC_BASE_URL until the
// model calls no more tools, answers each call with sixty lines, and prints the
// outcome.
func runAgent() int { return runAgentAs("") }

// runAgentAs is runAgent with a session id in the form of Claude Code, if it is not
// empty.
func runAgentAs(id string) int {
	type block struct {
		Type string          `json:"type"`
		ID   string          `json:"id,omitempty"`
		Text string          `json:"text,omitempty"`
		Name string          `json:"name,omitempty"`
		In   json.RawMessage `json:"input,omitempty"`
	}
	task := map[string]any{"role": "user", "content": "Look at everything there is."}
	history := []any{task}
	typed := os.Getenv("TYPED") // a message before the task
	if typed != "" {
		history = []any{map[string]any{"role": "user", "content": typed}}
	}
	for step := range 200 {
		metadata := map[string]any{}
		if id != "" {
			metadata["user_id"] = "user_0_account__session_" + id
		}
		body, err := json.Marshal(map[string]any{
			"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": history, "metadata": metadata,
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
		if results == nil && typed != "" {
			fmt.Println(reply.Content[0].Text)
			typed, history = "", append(history, task)
			continue
		}
		if results == nil {
			fmt.Printf("done after %d steps\n", step)
			return 0
		}
		history = append(history, map[string]any{"role": "user", "content": results})
	}
	return 2
}

// runClaude behaves as Claude Code where furl run looks: env in its settings beats the
// environment, and a status line gets JSON on standard input. It prints the status line
// at its end. Over a cloud, it prints where furl forwards its requests, and sends some
// only if that is this machine.
func runClaude() int {
	const id = "6f0c1f6e-0000-4000-8000-000000000001"
	var settings struct {
		Env        map[string]string `json:"env"`
		StatusLine struct {
			Command string `json:"command"`
		} `json:"statusLine"`
	}
	var texts []string
	for _, name := range []string{os.Getenv("HOME") + "/.claude/settings.json", ".claude/settings.json", ".claude/settings.local.json"} { // the last wins
		if file, err := os.ReadFile(name); err == nil {
			texts = append(texts, string(file))
		}
	}
	if len(os.Args) > 2 && os.Args[1] == "--settings" {
		texts = append(texts, os.Args[2])
	}
	for _, text := range texts {
		if err := json.Unmarshal([]byte(text), &settings); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for name, value := range settings.Env {
		os.Setenv(name, value)
	}
	for cloud, base := range map[string]string{
		"CLAUDE_CODE_USE_MANTLE": "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "CLAUDE_CODE_USE_ANTHROPIC_AWS": "ANTHROPIC_AWS_BASE_URL",
		"CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD": "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "CLAUDE_CODE_USE_FOUNDRY": "ANTHROPIC_FOUNDRY_BASE_URL",
	} {
		url := os.Getenv(base)
		switch {
		case os.Getenv(cloud) != "1":
			continue
		case url == "":
			fmt.Println("requests are sent to the cloud")
			return 0
		case cloud == "CLAUDE_CODE_USE_FOUNDRY" && os.Getenv("ANTHROPIC_FOUNDRY_RESOURCE") != "":
			fmt.Println("API Error: baseURL and resource are mutually exclusive")
			return 1
		case !strings.HasPrefix(url, os.Getenv("FURL_URL")):
			fmt.Println("requests are sent elsewhere")
			return 0
		}
		os.Setenv("ANTHROPIC_BASE_URL", url)
		if to := forwardedTo(); !strings.HasPrefix(to, "http://127.0.0.1:") {
			fmt.Printf("base %s, forwarded to %s\n", strings.TrimPrefix(url, os.Getenv("FURL_URL")), to)
			return 0
		}
	}
	if settings.Env["ANTHROPIC_BASE_URL"] != "" {
		fmt.Println("requests are sent elsewhere")
		return 0
	}
	code := runAgentAs(id)
	if settings.StatusLine.Command != "" {
		line := exec.Command("sh", "-c", settings.StatusLine.Command)
		line.Stdin = strings.NewReader(`{"session_id":"` + id + `","model":{"id":"claude-sonnet-4-5"},"workspace":{"current_dir":"/"}}`)
		out, err := line.CombinedOutput()
		fmt.Printf("status line: %s(%v)\n", out, err)
	}
	return code
}

// forwardedTo is where the gateway forwards requests in Anthropic's format.
func forwardedTo() string {
	resp, err := http.Get(os.Getenv("FURL_URL") + "/furl/v1/status")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var status struct{ Anthropic string }
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return err.Error()
	}
	return status.Anthropic
}
