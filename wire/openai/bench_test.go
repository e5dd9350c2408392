package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// history makes a request of about the given number of tokens, at four bytes
// a token: a task, then steps with a call, its result and text.
func history(c protocol.Codec, tokens int) []byte {
	var b strings.Builder
	if c == Chat {
		b.WriteString(`{"model":"gpt-5","stream":true,"messages":[{"role":"system","content":"You are a coding agent."},{"role":"user","content":"Fix the build."}`)
	} else {
		b.WriteString(`{"model":"gpt-5","stream":true,"instructions":"You are a coding agent.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix the build."}]}`)
	}
	source := strings.Repeat(`func (s *server) handle(w http.ResponseWriter, r *http.Request) {\n\tif r.Method != \"POST\" {\n\t\treturn\n\t}\n`, 40)
	for i := 0; b.Len() < 4*tokens; i++ {
		args := fmt.Sprintf(`{\"command\":\"sed -n '%d,%dp' internal/server/server.go\",\"timeout\":10000}`, i, i+40)
		if i%5 == 4 { // an edit
			args = fmt.Sprintf(`{\"path\":\"internal/server/%d.go\",\"text\":\"%s\"}`, i, strings.NewReplacer(`\n`, `\\n`, `\t`, `\\t`, `\"`, `\\\"`).Replace(source[:1200]))
		}
		words := "Now the handler, which must answer before it reads the body — see above."
		out := source[:len(source)*(1+i%4)/4]
		out = strings.TrimRight(out, `\`)
		if c == Chat {
			fmt.Fprintf(&b, `,{"role":"assistant","content":"%s","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"shell","arguments":"%s"}}]},{"role":"tool","tool_call_id":"call_%d","content":"%s"}`,
				words, i, args, i, out)
		} else {
			fmt.Fprintf(&b, `,{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"%s"},{"type":"message","id":"msg_%d","role":"assistant","content":[{"type":"output_text","text":"%s","annotations":[]}]},{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"shell","arguments":"%s"},{"type":"function_call_output","call_id":"call_%d","output":"%s"}`,
				i, strings.Repeat("QUJD", 200), i, words, i, i, args, i, out)
		}
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// sizes runs a benchmark for both formats and three sizes of request.
func sizes(b *testing.B, run func(b *testing.B, c protocol.Codec, body []byte)) {
	for _, c := range []protocol.Codec{Chat, Responses} {
		for _, size := range []struct {
			name   string
			tokens int
		}{{"50k", 50_000}, {"200k", 200_000}, {"1M", 1_000_000}} {
			b.Run(string(c.Format())+"/"+size.name, func(b *testing.B) {
				body := history(c, size.tokens)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				b.ResetTimer()
				run(b, c, body)
			})
		}
	}
}

// BenchmarkCopy is the baseline: a plain copy of the same bytes.
func BenchmarkCopy(b *testing.B) {
	sizes(b, func(b *testing.B, _ protocol.Codec, body []byte) {
		dst := make([]byte, len(body))
		for b.Loop() {
			copy(dst, body)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	sizes(b, func(b *testing.B, c protocol.Codec, body []byte) {
		for b.Loop() {
			if _, err := c.DecodeRequest(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEncode masks every sixth message's results.
func BenchmarkEncode(b *testing.B) {
	sizes(b, func(b *testing.B, c protocol.Codec, body []byte) {
		req := request(b, c, string(body))
		v := identity(req)
		for i := range v.Messages {
			if s := &v.Messages[i]; i%6 < 3 && s.Blocks[0].Block.Kind == furl.KindResult {
				edit(s, 0, "[result of shell hidden, 4,000 characters]")
			}
		}
		for b.Loop() {
			if _, err := c.EncodeRequest(req, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncodeIdentity(b *testing.B) {
	sizes(b, func(b *testing.B, c protocol.Codec, body []byte) {
		req := request(b, c, string(body))
		v := identity(req)
		for b.Loop() {
			if _, err := c.EncodeRequest(req, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	sizes(b, func(b *testing.B, c protocol.Codec, body []byte) {
		req := request(b, c, string(body))
		req.Body = nil // pairs only, as replay checks each request
		for b.Loop() {
			if err := c.Validate(req, furl.Model{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
