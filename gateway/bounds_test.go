package gateway

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// Decoding a request takes no more memory than was estimated, also where its
// elements are not what the provider takes.
func TestDecodingStaysWithinTheEstimate(t *testing.T) {
	n := 200_000
	if RaceDetector {
		n = 20_000
	}
	list := func(element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	content := `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":[%s]}]}`
	arguments := `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":%s}]}]}`
	for name, body := range map[string]string{
		"messages":            fmt.Sprintf(`{"model":"m","messages":[%s]}`, list(`{"role":"user","content":""}`)),
		"strings as blocks":   fmt.Sprintf(content, list(`"a"`)),
		"numbers as blocks":   fmt.Sprintf(content, list(`1`)),
		"lists as blocks":     fmt.Sprintf(content, list(`[]`)),
		"braces in a string":  fmt.Sprintf(content, `{"type":"text","text":"\\\"{"},`+list(`1`)),
		"strings as system":   fmt.Sprintf(`{"model":"m","system":[%s],"messages":[{"role":"user","content":"a"}]}`, list(`"a"`)),
		"numbers as tools":    fmt.Sprintf(`{"model":"m","tools":[%s],"messages":[{"role":"user","content":"a"}]}`, list(`0`)),
		"strings as input":    fmt.Sprintf(`{"model":"m","input":[%s]}`, list(`"a"`)),
		"fields of arguments": fmt.Sprintf(arguments, "{"+list(`"a":1`)+"}"),
		"numbers in a list":   fmt.Sprintf(arguments, `{"x":[`+list(`1`)+"]}"),
		"images in a result": fmt.Sprintf(content, `{"type":"tool_result","tool_use_id":"x","content":[{"type":"document","source":{"type":"content","content":[`+
			list(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aa"}}`)+`]}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			estimate, parts := clients.MemoryOf([]byte(body))
			if parts > maxParts {
				return // it is not decoded
			}
			for _, codec := range []protocol.Codec{anthropic.Codec, openai.Chat, openai.Responses} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				req, err := codec.DecodeRequest([]byte(body))
				if err == nil {
					for i := range req.Messages {
						req.Messages[i].Seal()
					}
				}
				runtime.ReadMemStats(&after)
				if took := int64(after.TotalAlloc - before.TotalAlloc); took > estimate {
					t.Errorf("%s: decoding allocated %d MB, estimated %d MB", codec.Format(), took>>20, estimate>>20)
				}
			}
		})
	}
}

func BenchmarkMemoryOf(b *testing.B) {
	var body strings.Builder
	body.WriteString(`{"model":"m","messages":[{"role":"user","content":"Go on."}`)
	for i := range 200 {
		fmt.Fprintf(&body, `,{"role":"assistant","content":[{"type":"tool_use","id":"%d","name":"Read","input":{"path":"/a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"%d","content":%q}]}`,
			i, i, strings.Repeat("if err := run(ctx, \"name\"); err != nil {\n\treturn err\n}\n", 40))
	}
	body.WriteString(`]}`)
	b.SetBytes(int64(body.Len()))
	for b.Loop() {
		clients.MemoryOf([]byte(body.String()))
	}
}
