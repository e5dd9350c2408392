package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// askSim is a small agent for the scripts. It sends requests to ANTHROPIC_BASE_URL, once
// or until there are no more calls, and prints the last reply. Modes: once, loop, rename
// (with ids of its own for calls) and think.
func askSim() {
	mode, model := os.Args[1], os.Args[2]
	messages := []any{map[string]any{"role": "user", "content": "Look around."}}
	for {
		status, body := ask(mode, model, messages)
		if status != http.StatusOK {
			fmt.Println(string(body))
			os.Exit(3)
		}
		var reply struct {
			Content []map[string]any `json:"content"`
		}
		if err := json.Unmarshal(body, &reply); err != nil {
			fmt.Println(err)
			os.Exit(4)
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": reply.Content})
		var results []any
		for _, b := range reply.Content {
			if b["type"] == "tool_use" {
				if mode == "rename" { // as clients do whose providers require other ids
					b["id"] = fmt.Sprint("id", len(messages))
				}
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": b["id"], "content": "nothing"})
			} else {
				fmt.Println(b["text"])
			}
		}
		if results == nil || mode == "once" {
			return
		}
		messages = append(messages, map[string]any{"role": "user", "content": results})
	}
}

func ask(mode, model string, messages []any) (int, []byte) {
	fields := map[string]any{
		"model": model, "max_tokens": 1000, "messages": messages,
		"tools": []any{map[string]any{"name": "bash", "input_schema": map[string]any{
			"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"},
		}}},
	}
	if mode == "think" {
		fields["max_tokens"], fields["thinking"] = 3000, map[string]any{"type": "enabled", "budget_tokens": 1024}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("x-api-key", os.Getenv("ANTHROPIC_API_KEY"))
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		os.Exit(5)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		os.Exit(6)
	}
	return resp.StatusCode, answer
}
