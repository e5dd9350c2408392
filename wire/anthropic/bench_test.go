package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// benchBody is a coding session of about n bytes: calls, results full of
// source text, thinking, some text.
func benchBody(n int) []byte {
	source := strings.Repeat("\tif err := run(ctx, name); err != nil {\n\t\treturn fmt.Errorf(\"run %s: %w\", name, err)\n\t}\n", 40)
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"go"}`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":"%s"},{"type":"text","text":"Reading file %d."},`+
			`{"type":"tool_use","id":"toolu_%06d","name":"Read","input":{"file_path":"/src/pkg/file_%d.go","offset":%d,"limit":200}}]}`,
			rawjson.AppendString(nil, "The error must come from run; let me look at who calls it."), strings.Repeat("QUJD", 100), i, i, i, i*10)
		fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%06d","content":[{"type":"text","text":%s}]}]}`,
			i, rawjson.AppendString(nil, fmt.Sprint(i, source)))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// sizes are bodies of about 50k, 200k and 1M tokens.
var sizes = []struct {
	name  string
	bytes int
}{{"50k", 200 << 10}, {"200k", 800 << 10}, {"1M", 4 << 20}}

func BenchmarkDecodeRequest(b *testing.B) {
	for _, size := range sizes {
		body := benchBody(size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Codec.DecodeRequest(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncodeRequest masks every tenth result.
func BenchmarkEncodeRequest(b *testing.B) {
	for _, size := range sizes {
		req, err := Codec.DecodeRequest(benchBody(size.bytes))
		if err != nil {
			b.Fatal(err)
		}
		v := viewOf(req.Messages)
		n := 0
		for i := range v.Messages {
			if v.Messages[i].Blocks[0].Block.Kind == furl.KindResult {
				if n++; n%10 == 0 {
					edit(v, i, 0, "[hidden: 3,600 characters of Go]")
				}
			}
		}
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(req.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Codec.EncodeRequest(req, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCopy is the baseline of the two.
func BenchmarkCopy(b *testing.B) {
	for _, size := range sizes {
		body := benchBody(size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_ = append([]byte(nil), body...)
			}
		})
	}
}
