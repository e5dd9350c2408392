package furl_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// family is a wire format and what can be said in it.
type family struct {
	codec    protocol.Codec
	model    furl.Model
	thinking bool // thinking is signed and bound to its prefix
	mixed    bool // results come in user messages, with words after them
	single   bool // one block a message
	// hosted makes the halves of a pair: a call that the provider runs, and its
	// answer. calls makes a call by the program of such a call, says makes words of
	// the assistant. They are nil if the format has none.
	hosted func(id string) (call, answer string)
	calls  func(id, caller string) string
	says   func(text string) string
}

var families = []family{
	{
		codec: anthropic.Codec, model: furl.Model{Thinking: furl.Thinking{Binds: true}}, thinking: true, mixed: true,
		hosted: func(id string) (call, answer string) {
			return `{"type":"server_tool_use","id":"` + id + `","name":"code_execution","input":{"code":"x()"}}`,
				`{"type":"code_execution_tool_result","tool_use_id":"` + id + `","content":{"stdout":"found src/file_1.go"}}`
		},
		calls: func(id, caller string) string {
			return `{"type":"tool_use","id":"` + id + `","name":"read","input":{},"caller":{"type":"code_execution_20250825","tool_id":"` + caller + `"}}`
		},
		says: func(text string) string { return `{"type":"text","text":"` + text + `"}` },
	},
	{codec: openai.Chat},
	{
		codec: openai.Responses, single: true,
		hosted: func(id string) (call, answer string) {
			return `{"type":"program","id":"prog_` + id + `","call_id":"` + id + `","code":"x()","fingerprint":"f"}`,
				`{"type":"program_output","id":"out_` + id + `","call_id":"` + id + `","result":"found src/file_1.go","status":"completed"}`
		},
		calls: func(id, caller string) string {
			return `{"type":"function_call","call_id":"` + id + `","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"` + caller + `"}}`
		},
		says: func(text string) string {
			return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`
		},
	},
}

// letters counts one token for each four letters, as a counter for tests.
type letters struct{}

func (letters) Count(s string) int { return (len(s) + 3) / 4 }

func text(s string) furl.Block { return furl.Block{Kind: furl.KindText, Text: s} }

var words = rapid.SampledFrom([]string{
	"hi", "please fix the parser", "and now the tests", strings.Repeat("a long story. ", 30) + "end", "look at src/file_3.go:12", "ünïcode ✓ \"quoted\"\n\ttext",
})

// prefixOf renders the first n shown messages without their thinking, as a
// provider that binds thinking sees them.
func prefixOf(sent [][]json.RawMessage, n int) string {
	var b strings.Builder
	for _, raws := range sent[:n] {
		for _, raw := range raws {
			b.WriteString(withoutThinking(raw))
			b.WriteString("\n")
		}
	}
	return b.String()
}

func withoutThinking(raw json.RawMessage) string {
	var m struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	var kept []string
	for _, c := range m.Content {
		if !strings.Contains(string(c), `"type":"thinking"`) {
			kept = append(kept, string(c))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return m.Role + ":" + strings.Join(kept, ",")
}

func join(raws []json.RawMessage) string {
	var b strings.Builder
	for _, r := range raws {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	return b.String()
}

// printRecord writes out all of a record, so that a change shows.
func printRecord(r furl.Record) string {
	switch b := r.Body.(type) {
	case *furl.Message:
		return fmt.Sprintf("%d<%d %v %+v", r.Seq, r.Parent, r.By, *b)
	case *furl.Reduction:
		return fmt.Sprintf("%d<%d %v %s", r.Seq, r.Parent, r.By, printReduction(b))
	case *furl.Takeover:
		return fmt.Sprintf("%d<%d %v takes over %d %v", r.Seq, r.Parent, r.By, b.Branch, b.Moved)
	default:
		return fmt.Sprintf("%d<%d %v %+v", r.Seq, r.Parent, r.By, b)
	}
}

func printReduction(red *furl.Reduction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %d→%d", red.Stage, red.Reason, red.Before, red.After)
	for _, it := range red.Items {
		fmt.Fprintf(&b, " %v", it.Spans)
		if mark, ok := it.Show.(furl.Mark); ok {
			for _, m := range mark.Messages {
				fmt.Fprintf(&b, " %+v", *m)
			}
			continue
		}
		fmt.Fprintf(&b, " %+v", it.Show)
	}
	return b.String()
}

func printPlan(p *furl.Plan) string {
	var b strings.Builder
	for _, red := range p.Reductions {
		b.WriteString(printReduction(red) + "\n")
	}
	fmt.Fprintf(&b, "%+v %d→%d backstops %d impossible %v", p.Steps, p.Before, p.After, p.Backstops, p.Impossible)
	return b.String()
}
