package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// sink collects what the server writes.
type sink struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

func (*sink) Close() error { return nil }

const opening = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// Whatever a client writes, the server ends when its input ends, and each line that it
// writes is a JSON-RPC message.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"zebra","limit":-1,"cursor":"eyJzIjoxLCJmIjpbMF19"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_get","arguments":{"handle":"furl:aaa1/3.0","from_line":-9223372036854775808}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_pin","arguments":{"handle":"furl:aaa1/18446744073709551615.2147483647"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","arguments":{"cursor":"99999999999999999999"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"context_status","arguments":{"session":"\u0000"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"furl://session/aaa1?before=18446744073709551615"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"furl://session/{id}{?before}"},"argument":{"name":"id","value":""}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"prompts/get","params":{"name":"recall"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `[]`, `[{}]`, `{`, `nul`, "\x00", `{"jsonrpc":"2.0","id":1e400,"method":""}`,
		strings.Repeat("[", 10_000), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	} {
		f.Add(line, true)
		f.Add(line, false)
	}
	fx := newFixture(f, Options{Project: "/src/app"})
	fx.add(f, "aaa1", "/src/app", "zebra")
	f.Fuzz(func(t *testing.T, line string, begun bool) {
		in := line + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n"
		if begun {
			in = opening + in
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var out sink
		_ = fx.server.Serve(ctx, io.NopCloser(strings.NewReader(in)), &out) // an error says that the input was invalid
		if ctx.Err() != nil {
			t.Fatalf("the server does not end after %q", line)
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		for one := range strings.Lines(out.String()) {
			var m struct {
				Version string `json:"jsonrpc"`
			}
			if err := json.Unmarshal([]byte(one), &m); err != nil || m.Version != "2.0" {
				t.Errorf("the server wrote %q after %q: %v", one, line, err)
			}
		}
	})
}
