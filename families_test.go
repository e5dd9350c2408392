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
}

var families = []family{
	{codec: anthropic.Codec, model: furl.Model{Thinking: furl.Thinking{Binds: true}}, thinking: true, mixed: true},
	{codec: openai.Chat},
	{codec: openai.Responses, single: true},
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
