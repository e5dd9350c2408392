package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// instructions are a request's fields with instructions and a tool, with breakpoints as
// Claude Code sets them.
func instructions() string {
	return fmt.Sprintf(`,"tools":[{"name":"read","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`+
		`,"system":[{"type":"text","text":"You are an agent."},{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]`, strings.Repeat("rule ", 8000))
}

// pausedTwice asks three times, with pauses that an entry of one hour outlives.
func pausedTwice(t *testing.T, st *pausing, headers ...string) []sim.Entry {
	t.Helper()
	st.fields = instructions()
	st.ask(t, 3000, headers...)
	time.Sleep(10 * time.Minute)
	st.ask(t, 10, headers...)
	time.Sleep(40 * time.Minute)
	st.history = withoutMark(st.history) // a request may have four breakpoints
	st.ask(t, 10, headers...)
	_, asked := st.pings()
	return asked
}

// withoutMark removes the oldest breakpoint of a message, as clients do.
func withoutMark(history []json.RawMessage) []json.RawMessage {
	for i := range history {
		plain := bytes.Replace(history[i], []byte(`"cache_control":{"type":"ephemeral"},`), nil, 1)
		if len(plain) < len(history[i]) {
			history[i] = plain
			break
		}
	}
	return history
}

// From the first pause on, instructions and tools get entries of one hour, and the next
// pause finds them in the cache. Nothing else of the request changes, the log tells what
// was sent, and what the session would have cost without furl is what it costs then.
func TestHourCache(t *testing.T) {
	var direct sim.Bill
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{}, func(t *testing.T, st *pausing) {
		for i, e := range pausedTwice(t, st) {
			if e.Usage.CacheWrite1h > 0 || bytes.Contains(e.Body, []byte(`"1h"`)) {
				t.Errorf("request %d has entries of one hour without the setting", i)
			}
		}
		direct = st.sim.Bill()
	})
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{HourCache: protocol.HourAlways}, func(t *testing.T, st *pausing) {
		asked := pausedTwice(t, st)
		for i, e := range asked {
			plain := bytes.ReplaceAll(e.Body, []byte(`,"ttl":"1h"`), nil)
			if longer := (len(e.Body) - len(plain)) / len(`,"ttl":"1h"`); longer != min(i, 1)*2 {
				t.Errorf("request %d has %d breakpoints of one hour", i, longer)
			}
			if !bytes.Contains(plain, []byte(instructions())) {
				t.Errorf("request %d: instructions and tools differ in more than the lifetime", i)
			}
		}
		if u := asked[1].Usage; u.CacheRead != 0 || u.CacheWrite1h < 8000 || u.CacheWrite < 3000 {
			t.Errorf("after the first pause %+v, want instructions written for an hour", u)
		}
		if u := asked[2].Usage; u.CacheRead < 8000 || u.CacheWrite1h != 0 || u.CacheWrite < 3000 {
			t.Errorf("after the second pause %+v, want instructions read", u)
		}
		bill, got := st.sim.Bill(), st.ledger(t)
		if bill.Cost >= direct.Cost || !near(got.Spent(), bill.Cost) || !near(got.CostWithout, direct.Cost) {
			t.Errorf("billed $%v, without the setting $%v; the ledger has $%v and $%v", bill.Cost, direct.Cost, got.Spent(), got.CostWithout)
		}
		m := st.metrics(t)
		if n, spent := m["furl_requests_cache_1h_total"], m[`furl_cost_spent_dollars_total{on="cache_1h"}`]; n != 2 || spent <= 0 {
			t.Errorf("the metrics have %v requests and $%v", n, spent)
		}
		s := st.session(t)
		sum, n := 0.0, 0
		h := session.NewHistory(s.HistoryOptions())
		if _, err := h.Extend(s.Records(0), s.Head()); err != nil {
			t.Fatal(err)
		}
		for _, q := range h.Requests() {
			sum += q.Without
		}
		if !near(sum, direct.Cost) {
			t.Errorf("without furl $%v by the history, want $%v", sum, direct.Cost)
		}
		for _, r := range s.Records(0) {
			if _, ok := r.Body.(*furl.Exchange); !ok {
				continue
			}
			if sent, err := s.SentBody(t.Context(), r.Seq); err != nil || !bytes.Equal(sent, asked[n].Body) {
				t.Errorf("request %d is not rebuilt as it was sent: %v", n, err)
			}
			n++
		}
	})
}

// Where they are not wanted, or cannot pay, there are none.
func TestHourCacheSettings(t *testing.T) {
	header := func(value string) []string { return []string{"X-Furl-Cache-1h", value} }
	secret := []byte("0123456789abcdef")
	for _, tt := range []struct {
		name    string
		o       gateway.Options
		headers []string
		hour    bool
	}{
		{"a policy that does not ask for them, whatever the client says", gateway.Options{}, header("true"), false},
		{"off", gateway.Options{HourCache: protocol.HourNever}, header("true"), false},
		{"on", gateway.Options{HourCache: protocol.HourAlways}, nil, true},
		{"on, and the client says no", gateway.Options{HourCache: protocol.HourAlways}, header("false"), false},
		{"tenants", gateway.Options{HourCache: protocol.HourAlways, TenantSecret: secret}, nil, false},
		{"tenants that ask for it", gateway.Options{HourCache: protocol.HourAlways, TenantSecret: secret}, header("true"), true},
		{"a dry run", gateway.Options{HourCache: protocol.HourAlways, DryRun: true}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pause(t, sim.Options{}, session.Options{Policy: "none"}, tt.o, func(t *testing.T, st *pausing) {
				written := 0
				for _, e := range pausedTwice(t, st, tt.headers...) {
					written += e.Usage.CacheWrite1h
				}
				if hour := written > 0; hour != tt.hour {
					t.Errorf("%d tokens with entries of one hour", written)
				}
			})
		})
	}
}

// Pings pay less often if instructions and tools are kept anyway.
func TestHourCacheWithPings(t *testing.T) {
	for _, hour := range []protocol.HourCache{protocol.HourNever, protocol.HourAlways} {
		pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{HourCache: hour, KeepAlive: 1}, func(t *testing.T, st *pausing) {
			pausedTwice(t, st)
			time.Sleep(time.Hour)
			pings, _ := st.pings()
			if want := map[protocol.HourCache]int{protocol.HourNever: 3, protocol.HourAlways: 1}[hour]; len(pings) != want {
				t.Errorf("entries of one hour %d: %d pings, want %d", hour, len(pings), want)
			}
		})
	}
}

// readBefore adds a step in which the agent has read so many words.
func (st *pausing) readBefore(words int) {
	n := len(st.history)
	st.history = append(st.history,
		mustJSON(map[string]any{"role": "user", "content": "look"}),
		mustJSON(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": "read", "input": map[string]any{"path": fmt.Sprintf("/src/%d.go", n)}}}}),
		mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprintf("toolu_%d", n), "content": strings.Repeat("word ", words)}}}),
		mustJSON(map[string]any{"role": "assistant", "content": "I see."}),
	)
}

// Policy auto asks for them by itself if what it hides in the first request after a pause
// pays for them. So that request costs no more than without furl.
func TestHourCacheOfAuto(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      gateway.Options
		words  int // of each of six results
		hidden bool
		hour   bool
	}{
		{"much is hidden", gateway.Options{}, 4000, true, true},
		{"little is hidden", gateway.Options{}, 300, true, false},
		{"nothing is hidden", gateway.Options{}, 1, false, false},
		{"off", gateway.Options{HourCache: protocol.HourNever}, 4000, true, false},
		{"pings have kept the cache over the pause", gateway.Options{KeepAlive: 2}, 4000, true, false},
		{"tenants", gateway.Options{TenantSecret: []byte("0123456789abcdef")}, 4000, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pause(t, sim.Options{}, session.Options{Policy: "auto"}, tt.o, func(t *testing.T, st *pausing) {
				for range 6 {
					st.readBefore(tt.words)
				}
				asked := pausedTwice(t, st)
				if hour := asked[1].Usage.CacheWrite1h > 0; hour != tt.hour {
					t.Errorf("after the first pause %+v", asked[1].Usage)
				}
				if read := asked[2].Usage.CacheRead >= 8000; read != tt.hour {
					t.Errorf("after the second pause %+v", asked[2].Usage)
				}
				if len(tt.o.TenantSecret) > 0 {
					return
				}
				s := st.session(t)
				h := session.NewHistory(s.HistoryOptions())
				if _, err := h.Extend(s.Records(0), s.Head()); err != nil {
					t.Fatal(err)
				}
				n, hidden := 0, 0
				for _, q := range h.Requests() {
					if q.Exchange == 0 {
						continue // from the client's history
					}
					n, hidden = n+1, hidden+q.Hidden
					if q.Cost > q.Without+1e-9 {
						t.Errorf("request %d costs $%v, without furl $%v", q.Number, q.Cost, q.Without)
					}
				}
				if n != 3 || hidden > 0 != tt.hidden {
					t.Errorf("%d requests, %d tokens hidden", n, hidden)
				}
			})
		})
	}
}

// A server that refuses the lifetime gets the request again without it, and no other one
// with it.
func TestHourCacheRefused(t *testing.T) {
	player := sim.PlayerFunc(func(_ context.Context, req *protocol.Request) (sim.Reply, error) {
		if bytes.Contains(req.Body, []byte(`"ttl"`)) {
			return sim.Reply{}, &protocol.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "cache_control.ttl: Extra inputs are not permitted"}
		}
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: "Done."}}}, nil
	})
	pause(t, sim.Options{Player: player}, session.Options{Policy: "none"}, gateway.Options{HourCache: protocol.HourAlways}, func(t *testing.T, st *pausing) {
		asked := pausedTwice(t, st)
		var with []int
		for i, e := range asked {
			if bytes.Contains(e.Body, []byte(`"ttl"`)) {
				with = append(with, i)
			}
		}
		if len(asked) != 4 || !slices.Equal(with, []int{1}) {
			t.Errorf("of %d requests, these asked for an hour: %v", len(asked), with)
		}
		if n := st.metrics(t)["furl_requests_cache_1h_total"]; n != 0 {
			t.Errorf("the metrics have %v requests", n)
		}
		s, n := st.session(t), 0
		sent := append(asked[:1:1], asked[2:]...)
		for _, r := range s.Records(0) {
			if _, ok := r.Body.(*furl.Exchange); ok {
				if body, err := s.SentBody(t.Context(), r.Seq); err != nil || !bytes.Equal(body, sent[n].Body) {
					t.Errorf("request %d is not rebuilt as it was sent: %v", n, err)
				}
				n++
			}
		}
	})
}
