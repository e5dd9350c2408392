package sim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// One more request of a session, at the sizes that agents send.
func BenchmarkServe(b *testing.B) {
	for _, size := range []int{57, 553, 2200} {
		b.Run(fmt.Sprintf("%dKB", size), func(b *testing.B) {
			var list []string
			for n := 0; len(list)*4 < size; n++ {
				list = append(list,
					fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read_file","input":{"path":"f%d.go"}}]}`, n, n),
					fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, n, strings.Repeat(fmt.Sprintf("line %d of the file\n", n), 400)))
			}
			body := `{"model":"claude-opus-5-5","max_tokens":1000,"stream":true,"tools":[` + readTool + `],"messages":[{"role":"user","content":"go"},` + strings.Join(list, ",") + `]}`
			s := sim.New(&sim.Options{Window: 10_000_000})
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
				req.Header.Set("x-api-key", "k")
				req.Header.Set("anthropic-version", "2023-06-01")
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, req); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
