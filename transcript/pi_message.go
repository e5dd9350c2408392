package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

type piMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	API        string          `json:"api"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model"`
	ResponseID string          `json:"responseId"`
	StopReason string          `json:"stopReason"`
	Timestamp  float64         `json:"timestamp"` // of a reply: the time of its request
	Usage      piUsage         `json:"usage"`

	Sections json.RawMessage   `json:"sections"` // system: the instructions by name
	Tools    []json.RawMessage `json:"toolsAdded"`

	ToolCallID string `json:"toolCallId"` // toolResult
	IsError    bool   `json:"isError"`
	Details    struct {
		ExitCode int `json:"exitCode"` // of OpenClaw's commands
	} `json:"details"`

	Command   string `json:"command"` // bashExecution
	Output    string `json:"output"`
	ExitCode  *int   `json:"exitCode"`
	Cancelled bool   `json:"cancelled"`
	Truncated bool   `json:"truncated"`
	FullPath  string `json:"fullOutputPath"`
	Excluded  bool   `json:"excludeFromContext"`

	Summary string `json:"summary"` // branchSummary, compactionSummary
}

// piUsage are the counts of a request. The input excludes the cache.
type piUsage struct {
	Input        int `json:"input"`
	Output       int `json:"output"`
	CacheRead    int `json:"cacheRead"`
	CacheWrite   int `json:"cacheWrite"`
	CacheWrite1h int `json:"cacheWrite1h"`
	Total        int `json:"totalTokens"`
}

// usage converts the counts. The total shows whether cacheWrite includes cacheWrite1h.
func (u piUsage) usage() furl.Usage {
	out := furl.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CacheWrite1h: u.CacheWrite1h, Output: u.Output}
	if out.Prompt()+u.Output > u.Total && u.CacheWrite1h <= u.CacheWrite {
		out.CacheWrite -= u.CacheWrite1h
	}
	return out
}

// instructions joins the sections of a system message, in their order.
func (m *piMessage) instructions() string {
	var texts []string
	if pieces := piPieces(m.Content); len(pieces) > 0 {
		texts = append(texts, pieces[0].text)
	}
	d := json.NewDecoder(bytes.NewReader(m.Sections))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		for d.More() {
			var text string
			if _, err := d.Token(); err != nil {
				break
			}
			if err := d.Decode(&text); err != nil {
				break
			}
			texts = append(texts, text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

func (m *piMessage) failed() bool { return m.StopReason == "aborted" || m.StopReason == "error" }

// injected reports whether a reply was not written by a model: openclaw
// records the messages that it sent through another channel.
func (m *piMessage) injected() bool {
	return m.Provider == "openclaw" && (m.Model == "delivery-mirror" || m.Model == "gateway-injected")
}

type piContent struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"thinkingSignature"`
	Redacted  bool            `json:"redacted"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Data      string          `json:"data"`
	MimeType  string          `json:"mimeType"`
}

// Texts that pi generates.
const (
	piNoResult      = "No result provided"
	piCompaction    = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n%s\n</summary>"
	piBranchSummary = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n%s</summary>"
)

// bash formats a command that the user ran, as pi sends it to the model.
func (m *piMessage) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Ran `%s`\n", m.Command)
	if m.Output != "" {
		fmt.Fprintf(&b, "```\n%s\n```", m.Output)
	} else {
		b.WriteString("(no output)")
	}
	switch {
	case m.Cancelled:
		b.WriteString("\n\n(command cancelled)")
	case m.ExitCode != nil && *m.ExitCode != 0:
		fmt.Fprintf(&b, "\n\nCommand exited with code %d", *m.ExitCode)
	}
	if m.Truncated && m.FullPath != "" {
		fmt.Fprintf(&b, "\n\n[Output truncated. Full output: %s]", m.FullPath)
	}
	return b.String()
}

// piPieces splits a message's content: a string, or a list of parts.
func piPieces(content json.RawMessage) []piece {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []piece{words(text)}
	}
	var parts []piContent
	_ = lenient(content, &parts) // content of another type has no parts
	var pieces []piece
	for i := range parts {
		switch c := &parts[i]; c.Type {
		case "text":
			pieces = append(pieces, words(c.Text))
		case "thinking":
			pieces = append(pieces, c.thinking())
		case "toolCall":
			// OpenAI's ids are recorded as "call_id|item_id".
			id, _, _ := strings.Cut(c.ID, "|")
			pieces = append(pieces, piece{kind: furl.KindCall, id: id, name: c.Name, args: c.Arguments})
		case "image":
			pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{{mime: c.MimeType, data: c.Data}}})
		}
	}
	return pieces
}

// thinking converts a thinking part. For OpenAI's models the signature is the
// whole reasoning item, as JSON.
func (c *piContent) thinking() piece {
	pc := piece{kind: furl.KindThinking, text: c.Thinking, signature: c.Signature, redacted: c.Redacted}
	if strings.HasPrefix(c.Signature, "{") {
		o := objectOf([]byte(c.Signature))
		pc.itemID, pc.signature = o.str("id"), o.str("encrypted_content")
	}
	return pc
}
