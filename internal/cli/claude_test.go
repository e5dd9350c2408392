package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// runClaudeCode is an agent for scripts that sends what Claude Code sends and writes what it
// writes: claude-code FILE SESSION FOLDER PROMPT. It continues the session in the file,
// and answers each call with a line until the model calls no more tools. The file has
// the prompt as typed; requests have a reminder in front of the first one.
//
// With $CLAUDE_AGENT, it is a sub-agent with that id.
func runClaudeCode() int {
	c := &claudeCode{file: os.Args[1], session: os.Args[2], folder: os.Args[3], agent: os.Getenv("CLAUDE_AGENT")}
	if err := c.run(os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type claudeCode struct {
	file, session, folder, agent string
	lines                        int
	parent                       string
	messages                     []claudeMessage
}

type claudeMessage struct {
	ID      string `json:"id,omitempty"`
	Role    string `json:"role"`
	Content any    `json:"content"`
	Model   string `json:"model,omitempty"`
	Usage   any    `json:"usage,omitempty"`
}

func (c *claudeCode) run(prompt string) error {
	if err := c.read(); err != nil {
		return err
	}
	if err := c.say(claudeMessage{Role: "user", Content: prompt}); err != nil {
		return err
	}
	for range 100 {
		reply, err := c.ask()
		if err != nil {
			return err
		}
		blocks, _ := reply.Content.([]any)
		var results []any
		for _, b := range blocks { // a record for each block
			part := reply
			part.Content = []any{b}
			if err := c.say(part); err != nil {
				return err
			}
			if b := b.(map[string]any); b["type"] == "tool_use" {
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": b["id"], "content": "one line"})
			}
		}
		if results == nil {
			return nil
		}
		if err := c.say(claudeMessage{Role: "user", Content: results}); err != nil {
			return err
		}
	}
	return fmt.Errorf("the task has no end")
}

// say adds a message to the file and to the history.
func (c *claudeCode) say(m claudeMessage) error {
	c.lines++
	uuid := fmt.Sprintf("%s-%d", c.agent, c.lines)
	record := map[string]any{
		"type": m.Role, "uuid": uuid, "parentUuid": any(nil), "sessionId": c.session, "cwd": c.folder,
		"isSidechain": c.agent != "", "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "message": m,
	}
	if c.parent != "" {
		record["parentUuid"] = c.parent
	}
	if c.agent != "" {
		record["agentId"] = c.agent
	}
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	c.parent = uuid
	c.add(m)
	return nil
}

// add adds a message to the history, in which a reply is one message.
func (c *claudeCode) add(m claudeMessage) {
	if n := len(c.messages) - 1; n >= 0 && m.ID != "" && c.messages[n].ID == m.ID {
		c.messages[n].Content = append(c.messages[n].Content.([]any), m.Content.([]any)...)
		return
	}
	c.messages = append(c.messages, m)
}

// read reads the history of the agent from the file, if there is one.
func (c *claudeCode) read() error {
	data, err := os.ReadFile(c.file)
	if os.IsNotExist(err) {
		return nil
	}
	for line := range bytes.Lines(data) {
		var r struct {
			UUID    string        `json:"uuid"`
			Agent   string        `json:"agentId"`
			Message claudeMessage `json:"message"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		c.lines++
		if r.Agent != c.agent || r.Message.Role == "" {
			continue
		}
		c.parent = r.UUID
		c.add(r.Message)
	}
	return err
}

// ask sends the history to $ANTHROPIC_BASE_URL.
func (c *claudeCode) ask() (reply claudeMessage, err error) {
	var messages []any
	for i, m := range c.messages {
		content := m.Content
		if text, ok := content.(string); ok && i == 0 {
			content = []any{
				map[string]any{"type": "text", "text": "<system-reminder>\nBe short.\n</system-reminder>"},
				map[string]any{"type": "text", "text": text},
			}
		}
		messages = append(messages, map[string]any{"role": m.Role, "content": content})
	}
	body, err := json.Marshal(map[string]any{
		"model": "claude-sonnet-4-5-20250929", "max_tokens": 500, "messages": messages,
		"system": []any{
			map[string]any{"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude."},
			map[string]any{"type": "text", "text": "<env>\nWorking directory: " + c.folder + "\nIs directory a git repo: Yes\n</env>"},
		},
		"tools": []any{map[string]any{"name": "Bash", "input_schema": map[string]any{
			"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"},
		}}},
	})
	if err != nil {
		return reply, err
	}
	req, err := http.NewRequest("POST", os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages?beta=true", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	req.Header.Set("X-Api-Key", "planted-secret-key")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claude-cli/2.1.330 (external, cli)")
	req.Header.Set("X-Claude-Code-Session-Id", c.session)
	if c.agent != "" {
		req.Header.Set("X-Claude-Code-Agent-Id", c.agent)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return reply, fmt.Errorf("%d %s %v", resp.StatusCode, strings.TrimSpace(string(answer)), err)
	}
	return reply, json.Unmarshal(answer, &reply)
}
