package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/procstat"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/upstream"
)

// instant is an upstream that has answered already: a step of an agent.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	step := r.Header.Get("X-Step")
	body := fmt.Sprintf(`{"id":"msg_%s","type":"message","role":"assistant","model":"m","content":%s,"stop_reason":"tool_use","usage":{"input_tokens":%d,"output_tokens":20}}`, step, answered(step), n/4)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

func answered(step string) string {
	return fmt.Sprintf(`[{"type":"thinking","thinking":"Let me look at step %s.","signature":"c2lnbmF0dXJl"},{"type":"text","text":"Reading."},{"type":"tool_use","id":"toolu_%s","name":"Read","input":{"file_path":"/src/file_%s.go","limit":200}}]`, step, step, step)
}

// growing is a conversation that grows by a step with each request.
type growing struct {
	body []byte // up to the end of the list
	step int
}

func (g *growing) grow() {
	step := strconv.Itoa(g.step)
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "%d\\tif err := run%d(ctx, name_%d_%d); err != nil { return fmt.Errorf(\\\"run: %%w\\\", err) }\\n", i, i*g.step, g.step, i)
	}
	g.body = fmt.Appendf(g.body, `,{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s","content":"%s"}]}`, answered(step), step, text.String())
	g.step++
}

// BenchmarkModel sends requests of a session that grows by a step each time,
// through the handler and into a store on the disk. BenchmarkFit has them fitted.
func BenchmarkModel(b *testing.B) {
	for _, policy := range []string{"none", "auto"} {
		for _, kb := range []int{57, 553, 2200} {
			b.Run(fmt.Sprintf("%s/%dKB", policy, kb), func(b *testing.B) {
				var furl float64
				benchGrowing(b, policy, kb, func(g *gateway.Gateway, c *growing) {
					r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", bytes.NewReader(append(bytes.Clone(c.body), "]}"...)))
					r.Header.Set("X-Step", strconv.Itoa(c.step))
					w := httptest.NewRecorder()
					patient{g}.ServeHTTP(w, r)
					if w.Code != http.StatusOK || w.Header().Get("X-Furl-Session") == "" {
						b.Fatal(w.Code, w.Body)
					}
					var ms float64
					if _, err := fmt.Sscanf(w.Header().Get("Server-Timing"), "furl;dur=%f", &ms); err != nil {
						b.Fatal(err)
					}
					furl += ms
				})
				b.ReportMetric(1000*furl/float64(b.N), "before-sending-µs/op")
			})
		}
	}
}

func BenchmarkFit(b *testing.B) {
	for _, policy := range []string{"none", "auto"} {
		for _, kb := range []int{57, 553, 2200} {
			b.Run(fmt.Sprintf("%s/%dKB", policy, kb), func(b *testing.B) {
				reply := make([]byte, 0, kb<<11)
				benchGrowing(b, policy, kb, func(g *gateway.Gateway, c *growing) {
					text := make([]byte, 0, len(c.body)+200)
					text = fmt.Appendf(text, `{"session":"s","format":"anthropic","usage":{"input_tokens":%d,"output_tokens":20},"body":`, len(c.body)/4)
					text = append(append(text, c.body...), "]}}"...)
					w := httptest.NewRecorder()
					w.Body = bytes.NewBuffer(reply[:0])
					g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/furl/v1/fit", bytes.NewReader(text)))
					if w.Code != http.StatusOK {
						b.Fatal(w.Code, w.Body)
					}
				})
			})
		}
	}
}

// benchGrowing sends the requests of a session that begins with so many kilobytes and grows by a
// step each time.
func benchGrowing(b *testing.B, policy string, kb int, send func(*gateway.Gateway, *growing)) {
	g := benchGateway(b, policy, kb<<10/4*7/10)
	tools := strings.Repeat(`{"name":"Read","description":"Reads a file from the disk and gives its lines with their numbers.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"}}}},`, 40)
	c := &growing{body: fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":32000,"system":%q,"tools":[%s],"messages":[{"role":"user","content":"Go on."}`,
		strings.Repeat("You are an agent that works on code. ", 150), strings.TrimSuffix(tools, ","))}
	for len(c.body) < kb<<10 {
		c.grow()
	}
	base, at := len(c.body), c.step
	send(g, c)
	b.ReportAllocs()
	before := procstat.Read().CPU
	for b.Loop() {
		if len(c.body) > base*5/4 { // as long as it is about this size
			c.body, c.step = c.body[:base], at
		}
		c.grow()
		send(g, c)
	}
	b.ReportMetric(float64((procstat.Read().CPU-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// benchGateway is a gateway over a store on the disk, in front of a provider that
// answers at once.
func benchGateway(b *testing.B, policy string, window int) *gateway.Gateway {
	store, err := sqlite.Open(filepath.Join(b.TempDir(), "furl.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	sessions, err := session.New(store, &session.Options{Policy: policy, Window: window})
	if err != nil {
		b.Fatal(err)
	}
	up, err := upstream.New("http://upstream.invalid", &upstream.Options{Transport: instant{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(up.Close)
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return g
}
