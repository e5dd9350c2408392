package rebuild

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/rawjson"
)

// BenchmarkCut cuts the body of a coding agent's request: 20 tools of 3 KB, and 400
// messages of 2 KB, whose positions are known.
func BenchmarkCut(b *testing.B) {
	tools := make([]string, 20)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool_%d","description":%q,"input_schema":{"type":"object","properties":{"path":{"type":"string","description":%q}}}}`, i, strings.Repeat("what it does ", 180), strings.Repeat("a path ", 80))
	}
	messages := make([]string, 400)
	for i := range messages {
		messages[i] = fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("words ", 330))
	}
	body := []byte(`{"model":"m","metadata":{"user_id":"user_1"},"system":"You help.","tools":[` + strings.Join(tools, ",") + `],"messages":[` + strings.Join(messages, ",") + `]}`)
	elements, _ := scan(body, "messages", func(string, rawjson.Span) {})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Cut(body, "messages", elements, nil)
	}
}
