package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/procstat"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/upstream"
)

// BenchmarkLong is a step more of a conversation of so many messages.
func BenchmarkLong(b *testing.B) {
	for _, policy := range []string{"none", "auto"} {
		for _, n := range []int{1_000, 4_000, 16_000} {
			b.Run(fmt.Sprintf("%s/%d", policy, n), func(b *testing.B) {
				file := filepath.Join(b.TempDir(), "furl.db")
				open := func() (*gateway.Gateway, func()) {
					store, err := sqlite.Open(file, nil)
					if err != nil {
						b.Fatal(err)
					}
					sessions, err := session.New(store, &session.Options{Policy: policy, Window: 100_000})
					if err != nil {
						b.Fatal(err)
					}
					up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: instant{}})
					if err != nil {
						b.Fatal(err)
					}
					g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
					if err != nil {
						b.Fatal(err)
					}
					return g, func() { up.Close(); store.Close() }
				}
				g, end := open()
				c := &growing{body: []byte(`{"model":"claude-sonnet-4-5","max_tokens":32000,"messages":[{"role":"user","content":"Go on."}`)}
				sent := 0
				send := func() {
					r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", &tailed{c.body, []byte("]}")})
					r.ContentLength = int64(len(c.body) + 2)
					r.Header.Set("X-Step", strconv.Itoa(c.step))
					w := httptest.NewRecorder()
					patient{g}.ServeHTTP(w, r)
					if w.Code != http.StatusOK || w.Header().Get("X-Furl-Session") == "" {
						b.Fatal(w.Code, w.Body)
					}
					sent, _ = strconv.Atoi(w.Header().Get("X-Furl-Tokens-After"))
				}
				for c.step < n/2 {
					c.short()
					if c.step%100 == 0 {
						send()
					}
				}
				b.ReportAllocs()
				before := procstat.Read().CPU
				for b.Loop() {
					c.short()
					send()
				}
				b.ReportMetric(float64((procstat.Read().CPU-before).Microseconds())/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(len(c.body)), "body")
				b.ReportMetric(float64(sent), "tokens")
				end()
				for range 3 {
					g, end = open()
					before = procstat.Read().CPU
					c.short()
					send()
					b.ReportMetric(float64((procstat.Read().CPU - before).Milliseconds()), "cold-cpu-ms")
					end()
				}
			})
		}
	}
}

// short grows by a short step.
func (g *growing) short() {
	step := strconv.Itoa(g.step)
	g.body = fmt.Appendf(g.body, `,{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s","content":"`, answered(step), step)
	for i := range 8 {
		g.body = fmt.Appendf(g.body, `%d\tif err := run%d(ctx, name_%d_%d); err != nil { return err }\n`, i, i*g.step, g.step, i)
	}
	g.body = append(g.body, `"}]}`...)
	g.step++
}

// tailed reads one slice after another, without a copy of both.
type tailed [2][]byte

func (t *tailed) Read(p []byte) (int, error) {
	for i := range t {
		if len(t[i]) > 0 {
			n := copy(p, t[i])
			t[i] = t[i][n:]
			return n, nil
		}
	}
	return 0, io.EOF
}
