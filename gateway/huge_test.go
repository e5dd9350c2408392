package gateway_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/procstat"
)

// huge makes the first request of a conversation, of about so many bytes.
func huge(shape string, size int, r *rand.Rand) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":"claude-sonnet-4-5","max_tokens":32000,"messages":[{"role":"user","content":"Go on %d."}`, r.Uint64())
	step := func(n int, content func(size int)) {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"path":"/a/%d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":`, n, n, n)
		content(size)
		b.WriteString(`}]}`)
	}
	words := func(size int) {
		b.WriteByte('"')
		for end := b.Len() + size; b.Len() < end; {
			fmt.Fprintf(&b, `%d\tif err := run%d(ctx, name_%d); err != nil { return fmt.Errorf(\"run: %%w\", err) }\n`, r.IntN(1000), r.IntN(100_000), r.IntN(1000))
		}
		b.WriteByte('"')
	}
	data := func(size int) string {
		raw := make([]byte, size*3/4)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	switch shape {
	case "one-result":
		step(0, func(int) { words(size) })
	case "one-letter":
		step(0, func(int) { fmt.Fprintf(&b, "%q", strings.Repeat("a", size)) })
	case "base64-result":
		step(0, func(int) { fmt.Fprintf(&b, "%q", data(size)) })
	case "messages":
		for n := 0; b.Len() < size; n++ {
			step(n, func(int) { words(6000) })
		}
	case "images":
		for n := 0; b.Len() < size; n++ {
			step(n, func(int) {
				fmt.Fprintf(&b, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]`, data(300_000))
			})
		}
	}
	b.WriteString("]}")
	return b.Bytes()
}

// BenchmarkHuge sends conversations of many megabytes that nobody has seen.
func BenchmarkHuge(b *testing.B) {
	for _, shape := range []string{"one-result", "messages", "images", "base64-result", "one-letter"} {
		for _, mb := range []int{5, 30, 60} {
			b.Run(fmt.Sprintf("%s/%dMB", shape, mb), func(b *testing.B) {
				g := benchGateway(b, "auto", 200_000)
				r := rand.New(rand.NewPCG(1, uint64(mb)))
				b.ReportAllocs()
				var cpu int64
				for b.Loop() {
					b.StopTimer()
					body := huge(shape, mb<<20, r)
					before := procstat.Read().CPU
					b.StartTimer()
					req := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", bytes.NewReader(body))
					w := httptest.NewRecorder()
					patient{g}.ServeHTTP(w, req)
					if w.Code != http.StatusOK || w.Header().Get("X-Furl-Session") == "" {
						b.Fatal(w.Code, w.Body)
					}
					cpu += (procstat.Read().CPU - before).Milliseconds()
				}
				b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
