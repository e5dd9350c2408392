package agent_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/tool"
)

// After a pause, instructions and tools get cache entries of one hour if what is hidden
// pays for them, and the next pause finds them in the cache. A provider that refuses them
// gets the request again without.
func TestHourCache(t *testing.T) {
	for _, refused := range []bool{false, true} {
		var minutes atomic.Int64
		now := func() time.Time {
			return time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(minutes.Load()) * time.Minute)
		}
		steps := sim.NewAgent(&sim.AgentOptions{Steps: 8})
		provider, url := provide(t, sim.Options{Now: now, Player: sim.PlayerFunc(func(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
			if refused && bytes.Contains(req.Body, []byte(`"ttl"`)) {
				return sim.Reply{}, &protocol.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "cache_control.ttl: Extra inputs are not permitted"}
			}
			return steps.Play(ctx, req)
		})})
		s := newSession(t, session.Options{Policy: "auto", Now: now})
		a := newAgent(t, s, models[0], url, agent.Options{System: strings.Repeat("rule ", 4000), Tools: []tool.Tool{readTool(strings.Repeat("word ", 3000))}})
		first := []int{0}
		for _, pause := range []int64{10, 40} {
			collect(t, a, agent.Text("go on"))
			minutes.Add(pause)
			first = append(first, len(provider.Requests()))
		}
		collect(t, a, agent.Text("go on"))
		with := 0
		for i, e := range provider.Requests() {
			if !bytes.Contains(e.Body, []byte(`"ttl":"1h"`)) {
				continue
			}
			with++
			if i < first[1] {
				t.Errorf("refused %t: request %d, before the first pause, asks for an hour", refused, i)
			}
		}
		if after := len(provider.Requests()) - first[1]; refused && with != 1 || !refused && with != after {
			t.Errorf("refused %t: %d requests ask for an hour, %d follow the first pause", refused, with, after)
		}
		if u := provider.Requests()[first[2]].Usage; u.CacheRead >= 4000 == refused {
			t.Errorf("refused %t: after the second pause %+v", refused, u)
		}
		if !refused {
			noRefusals(t, provider, s)
		}
		for _, r := range s.Records(0) {
			if ex, ok := r.Body.(*furl.Exchange); ok && refused && ex.Usage.CacheWrite1h > 0 {
				t.Errorf("record %d has entries of one hour", r.Seq)
			}
		}
	}
}
