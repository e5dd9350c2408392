package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
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

// withoutMark removes the breakpoint of the oldest message, as clients do.
func withoutMark(history []json.RawMessage) []json.RawMessage {
	history[0] = bytes.Replace(history[0], []byte(`"cache_control":{"type":"ephemeral"},`), nil, 1)
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
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{HourCache: true}, func(t *testing.T, st *pausing) {
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

// Without the user's word, and where they cannot pay, there are none.
func TestHourCacheIsOptIn(t *testing.T) {
	header := func(value string) []string { return []string{"X-Furl-Cache-1h", value} }
	secret := []byte("0123456789abcdef")
	for _, tt := range []struct {
		name    string
		o       gateway.Options
		headers []string
		hour    bool
	}{
		{"off, whatever the client says", gateway.Options{}, header("true"), false},
		{"on", gateway.Options{HourCache: true}, nil, true},
		{"on, and the client says no", gateway.Options{HourCache: true}, header("false"), false},
		{"tenants", gateway.Options{HourCache: true, TenantSecret: secret}, nil, false},
		{"tenants that ask for it", gateway.Options{HourCache: true, TenantSecret: secret}, header("true"), true},
		{"a dry run", gateway.Options{HourCache: true, DryRun: true}, nil, false},
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
	for _, hour := range []bool{false, true} {
		pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{HourCache: hour, KeepAlive: 1}, func(t *testing.T, st *pausing) {
			pausedTwice(t, st)
			time.Sleep(time.Hour)
			pings, _ := st.pings()
			if want := map[bool]int{false: 3, true: 1}[hour]; len(pings) != want {
				t.Errorf("entries of one hour %t: %d pings, want %d", hour, len(pings), want)
			}
		})
	}
}
