package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

const keepAliveKey = "planted-secret-key"

// pausing is a gateway that keeps caches alive, between a client and a sim, in the time
// of a synctest bubble.
type pausing struct {
	sim      *sim.Sim
	gateway  *gateway.Gateway
	up       gateway.Upstreams
	sessions *session.Sessions
	client   *http.Client
	log      *syncBuffer
	stop     func() // ends KeepAlive

	history []json.RawMessage
	fields  string // of each request, in addition
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// pause runs f with a gateway.
func pause(t *testing.T, so sim.Options, sess session.Options, o gateway.Options, f func(t *testing.T, st *pausing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Second) // the servers wait a while before they close connections
		st := &pausing{log: new(syncBuffer)}
		o.Logger = slog.New(slog.NewTextHandler(st.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		store := inmem.New()
		defer store.Close()
		var err error
		if st.sessions, err = session.New(store, &sess); err != nil {
			t.Fatal(err)
		}
		so.KeepBodies = true
		if so.Player == nil {
			so.Player = sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
				return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: "Done."}}}, nil
			})
		}
		st.sim = sim.New(&so)
		provider, front := newPipes(), newPipes()
		up, err := upstream.New("http://provider", &upstream.Options{Transport: transport(provider)})
		if err != nil {
			t.Fatal(err)
		}
		defer up.Close()
		st.up = gateway.Upstreams{Anthropic: up, OpenAI: up}
		if st.gateway, err = gateway.New(st.sessions, st.up, &o); err != nil {
			t.Fatal(err)
		}
		defer st.gateway.Close()
		for ln, h := range map[*pipes]http.Handler{front: patient{st.gateway}, provider: st.sim} {
			srv := &http.Server{Handler: h}
			go srv.Serve(ln)
			defer srv.Close()
		}
		st.client = &http.Client{Transport: transport(front)}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := st.gateway.KeepAlive(ctx); err != nil {
				t.Error(err)
			}
		})
		st.stop = func() { cancel(); running.Wait() }
		defer st.stop()
		synctest.Wait()
		f(t, st)
	})
}

func transport(to *pipes) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return to.dial(), nil }}
}

// ask sends a request with a message of the user of so many words, and a breakpoint on
// it. It can be called four times, because a request may have four breakpoints.
func (st *pausing) ask(t *testing.T, words int, headers ...string) {
	t.Helper()
	st.history = append(st.history, mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{
		"type": "text", "text": fmt.Sprintf("%d %s", len(st.history), strings.Repeat("word ", words)), "cache_control": map[string]any{"type": "ephemeral"},
	}}}))
	body := fmt.Sprintf(`{"model":"claude-sonnet-4-5", "max_tokens":2000,"stream":true%s,"messages":%s}`, st.fields, mustJSON(st.history))
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+keepAliveKey)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s, %v", resp.StatusCode, answer, err)
	}
	a := &agent{format: furl.FormatAnthropic, stream: true}
	for _, m := range a.understand(t, answer).Messages {
		st.history = append(st.history, m.Raw)
	}
}

// pings are the requests that generate nothing, asked those of the client.
func (st *pausing) pings() (pings, asked []sim.Entry) {
	for _, e := range st.sim.Requests() {
		if bytes.Contains(e.Body, []byte(`"max_tokens":0,`)) {
			pings = append(pings, e)
		} else {
			asked = append(asked, e)
		}
	}
	return pings, asked
}

// released checks that nothing of a client is held.
func (st *pausing) released(t *testing.T, when string) {
	t.Helper()
	if n, size := st.gateway.Held(); n != 0 || size != 0 {
		t.Errorf("%s: %d requests of %d bytes are held", when, n, size)
	}
}

// Shortly before the cache expires, the last request is sent again and generates
// nothing, as often as it pays. Then the request is released. The next request of the
// client reads the cache.
func TestKeepAlive(t *testing.T) {
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
		st.ask(t, 15_000)
		if n, size := st.gateway.Held(); n != 1 || size == 0 {
			t.Fatalf("%d requests of %d bytes are held, want 1", n, size)
		}
		start := st.sim.Requests()[0].At
		time.Sleep(4*time.Minute + 29*time.Second)
		if pings, _ := st.pings(); len(pings) != 0 {
			t.Fatalf("a ping after %v", time.Since(start))
		}
		time.Sleep(8 * time.Minute)
		pings, asked := st.pings()
		if len(pings) != 2 {
			t.Fatalf("%d pings, want the 2 that pay", len(pings))
		}
		for i, p := range pings {
			want := bytes.Replace(bytes.Replace(asked[0].Body, []byte(`"max_tokens":2000`), []byte(`"max_tokens":0`), 1), []byte(`"stream":true,`), nil, 1)
			if !bytes.Equal(p.Body, want) {
				t.Errorf("ping %d differs from the request in more than max_tokens and stream", i)
			}
			if after := p.At.Sub(start); after != time.Duration(i+1)*270*time.Second {
				t.Errorf("ping %d after %v", i, after)
			}
			if p.Usage.CacheRead == 0 || p.Usage.CacheWrite != 0 || p.Usage.Output != 0 || p.Status != 200 {
				t.Errorf("ping %d: status %d, %+v", i, p.Status, p.Usage)
			}
		}
		st.released(t, "after the last ping")
		st.ask(t, 10)
		_, asked = st.pings()
		if u := asked[1].Usage; u.CacheRead == 0 || u.CacheWrite > 100 {
			t.Errorf("after %v the client's request is billed %+v", time.Since(start), u)
		}
	})
}

// Pings are furl's own cost: in the session's ledger, in the metrics, and in the savings
// of the process. What the next request would have cost without them counts as saved.
// The transcript does not have them.
func TestKeepAliveIsCounted(t *testing.T) {
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
		st.ask(t, 15_000)
		time.Sleep(10 * time.Minute)
		got := st.ledger(t)
		billed := st.sim.Bill()
		if got.Requests != 1 || got.Pings != 2 || got.PingTokens < 30_000 || got.PingCost <= 0 || !near(got.Spent(), billed.Cost) {
			t.Errorf("the ledger is %+v, billed were $%v", got, billed.Cost)
		}
		if got.Saved() >= 0 {
			t.Errorf("saved $%v before the session has continued", got.Saved())
		}
		s := st.session(t)
		if n := len(s.Records(0)); n != 3 {
			t.Errorf("%d records, want a message, an exchange and a reply", n)
		}
		st.ask(t, 10)
		got = st.ledger(t)
		if billed = st.sim.Bill(); !near(got.Spent(), billed.Cost) || got.Saved() <= 0 {
			t.Errorf("the ledger is %+v, saved $%v; billed were $%v", got, got.Saved(), billed.Cost)
		}
		var process storage.Savings
		for _, one := range st.sessions.Stats().Savings {
			process.Add(one)
		}
		if process.Pings != 2 || !near(process.PingCost, got.PingCost) {
			t.Errorf("the savings of the process are %+v", process)
		}
		m := st.metrics(t)
		for name, want := range map[string]float64{
			"furl_keep_alive_pings_total": 2, "furl_keep_alive_failed_total": 0, "furl_keep_alive_held": 1,
			`furl_cost_spent_dollars_total{on="keep_alive"}`: got.PingCost,
		} {
			if !near(m[name], want) {
				t.Errorf("%s is %v, want %v", name, m[name], want)
			}
		}
	})
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func (st *pausing) ledger(t *testing.T) (sum storage.Savings) {
	t.Helper()
	for info, err := range st.sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(info.Ledger.Total())
	}
	return sum
}

func (st *pausing) session(t *testing.T) *session.Session {
	t.Helper()
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (st *pausing) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	resp, err := st.client.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		var v float64
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if _, err := fmt.Sscan(line[i+1:], &v); err == nil {
				out[line[:i]] = v
			}
		}
	}
	return out
}

// The next plan takes the cache as alive, so that furl does not rewrite it.
func TestKeepAliveIsPlannedFor(t *testing.T) {
	pause(t, sim.Options{}, session.Options{}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
		st.ask(t, 15_000)
		start := time.Now()
		time.Sleep(10 * time.Minute)
		f, err := st.session(t).Fit(t.Context(), "claude-sonnet-4-5")
		if err != nil {
			t.Fatal(err)
		}
		if used := f.Budget.LastUse.Sub(start); used < 9*time.Minute-time.Second || used > 9*time.Minute+time.Second {
			t.Errorf("the plan takes the cache as used after %v, want after 9m", used)
		}
	})
}

// Without the user's word there are no pings, and nothing is held.
func TestKeepAliveIsOptIn(t *testing.T) {
	header := func(value string) []string { return []string{"X-Furl-Keep-Alive", value} }
	secret := []byte("0123456789abcdef")
	tests := []struct {
		name    string
		o       gateway.Options
		headers []string
		fields  string
		words   int
		pings   int
	}{
		{"off", gateway.Options{}, nil, "", 15_000, 0},
		{"off, whatever the client says", gateway.Options{}, header("true"), "", 15_000, 0},
		{"on", gateway.Options{KeepAlive: 1}, nil, "", 15_000, 1},
		{"on, and the client says no", gateway.Options{KeepAlive: 1}, header("false"), "", 15_000, 0},
		{"tenants", gateway.Options{KeepAlive: 1, TenantSecret: secret}, nil, "", 15_000, 0},
		{"a tenant says yes", gateway.Options{KeepAlive: 1, TenantSecret: secret}, header("true"), "", 15_000, 1},
		{"a dry run", gateway.Options{KeepAlive: 1, DryRun: true}, nil, "", 15_000, 0},
		{"a small prompt", gateway.Options{KeepAlive: 1}, nil, "", 5_000, 0},
		{"a thinking budget", gateway.Options{KeepAlive: 1}, nil, `,"thinking":{"type":"enabled","budget_tokens":1024}`, 15_000, 0},
		{"bypassed", gateway.Options{KeepAlive: 1}, []string{"X-Furl-Bypass", "true"}, "", 15_000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pause(t, sim.Options{}, session.Options{Policy: "none"}, tt.o, func(t *testing.T, st *pausing) {
				st.fields = tt.fields
				st.ask(t, tt.words, tt.headers...)
				if held, _ := st.gateway.Held(); held != tt.pings {
					t.Errorf("%d requests are held, want %d", held, tt.pings)
				}
				time.Sleep(time.Hour)
				if pings, _ := st.pings(); len(pings) != tt.pings {
					t.Errorf("%d pings, want %d", len(pings), tt.pings)
				}
				st.released(t, "after the pause")
			})
		})
	}
}

// The client's credential is released with the last ping, when the client sends its
// next request, when the session is deleted, and when the gateway is reloaded, drained
// or stopped. It is in no log, metric or record.
func TestKeepAliveReleasesCredential(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, st *pausing){
		"the last ping":    func(*testing.T, *pausing) { time.Sleep(10 * time.Minute) },
		"a reload":         func(t *testing.T, st *pausing) { st.reload(t) },
		"draining":         func(_ *testing.T, st *pausing) { st.gateway.Drain(); synctest.Wait() },
		"the end":          func(_ *testing.T, st *pausing) { st.stop() },
		"closing":          func(_ *testing.T, st *pausing) { st.gateway.Close() },
		"the next request": func(t *testing.T, st *pausing) { st.ask(t, 1, "X-Furl-Keep-Alive", "false") },
	} {
		t.Run(name, func(t *testing.T) {
			pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
				st.ask(t, 15_000)
				time.Sleep(5 * time.Minute) // and one ping
				if n, _ := st.gateway.Held(); n != 1 {
					t.Fatalf("%d requests are held", n)
				}
				end(t, st)
				st.released(t, "after "+name)
				pings, _ := st.pings()
				time.Sleep(time.Hour)
				if later, _ := st.pings(); len(later) != len(pings) {
					t.Errorf("%d pings after %s", len(later)-len(pings), name)
				}
				var text strings.Builder
				text.WriteString(st.log.String() + fmt.Sprint(slicesOf(maps.Keys(st.metrics(t)))))
				for info, err := range st.sessions.List(context.Background(), storage.SessionQuery{}) {
					if err != nil {
						t.Fatal(err)
					}
					text.WriteString(fmt.Sprintf("%+v", info))
				}
				for _, r := range st.session(t).Records(0) {
					text.WriteString(string(mustJSON(r.Body)))
				}
				if strings.Contains(text.String(), keepAliveKey) {
					t.Error("the credential is in the log, the metrics or the records")
				}
				if strings.Contains(st.log.String(), "word word") {
					t.Error("content is in the log")
				}
			})
		})
	}
	t.Run("a deleted session", func(t *testing.T) {
		pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
			st.ask(t, 15_000)
			if err := st.sessions.Delete(t.Context(), st.session(t).ID()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			if pings, _ := st.pings(); len(pings) != 0 {
				t.Errorf("%d pings for a deleted session", len(pings))
			}
			st.released(t, "after its time")
		})
	})
}

func slicesOf(seq func(func(string) bool)) (out []string) {
	for s := range seq {
		out = append(out, s)
	}
	return out
}

// reload replaces the gateway by one with the same options, as furl serve does.
func (st *pausing) reload(t *testing.T) {
	t.Helper()
	if _, err := st.gateway.With(st.up, &gateway.Options{KeepAlive: 4}); err != nil {
		t.Fatal(err)
	}
}

// An error ends the pings of a pause. After a refusal there are none for the session
// any more. A ping that finds no cache is the last one.
func TestKeepAliveStopsAfterErrors(t *testing.T) {
	tests := []struct {
		status int
		second int // pings in the next pause
	}{{529, 1}, {429, 1}, {500, 1}, {400, 0}, {401, 0}}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			pause(t, sim.Options{Faults: []sim.Fault{{Every: 2, Status: tt.status}}}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
				st.ask(t, 15_000)
				time.Sleep(time.Hour)
				if n := len(st.sim.Requests()); n != 2 {
					t.Fatalf("%d requests, want the client's and one ping", n)
				}
				st.released(t, "after the error")
				st.ask(t, 10)
				time.Sleep(5 * time.Minute)
				if pings, _ := st.pings(); len(pings) != 1+tt.second {
					t.Errorf("%d pings in the next pause, want %d", len(pings)-1, tt.second)
				}
				if m := st.metrics(t); m["furl_keep_alive_failed_total"] != float64(1+tt.second) {
					t.Errorf("%v failed pings", m["furl_keep_alive_failed_total"])
				}
				if !strings.Contains(st.log.String(), `msg="keep-alive failed"`) {
					t.Error("the error is not logged")
				}
			})
		})
	}
}

// After the machine has slept or the clock was set, the cache may have expired. A ping
// would write it, so there is none.
func TestKeepAliveAfterSleep(t *testing.T) {
	for _, jump := range []time.Duration{10 * time.Minute, -time.Hour} {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4, Now: now}, func(t *testing.T, st *pausing) {
			st.ask(t, 15_000)
			time.Sleep(4 * time.Minute)
			ahead.Store(int64(jump))
			time.Sleep(time.Hour)
			if pings, _ := st.pings(); len(pings) != 0 {
				t.Errorf("%d pings after the clock has changed by %v", len(pings), jump)
			}
			st.released(t, "after the clock has changed")
		})
	}
}

// While a request of the session is in flight there are no pings, however long it
// takes.
func TestNoPingDuringRequest(t *testing.T) {
	var requests atomic.Int64
	slow := sim.PlayerFunc(func(ctx context.Context, _ *protocol.Request) (sim.Reply, error) {
		if requests.Add(1) == 2 {
			time.Sleep(7 * time.Minute)
		}
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: "Done."}}}, nil
	})
	pause(t, sim.Options{Player: slow}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
		st.ask(t, 15_000)
		time.Sleep(time.Minute)
		st.ask(t, 10)
		if pings, _ := st.pings(); len(pings) != 0 {
			t.Errorf("%d pings during a request", len(pings))
		}
		time.Sleep(time.Hour)
		if pings, _ := st.pings(); len(pings) != 0 {
			t.Errorf("%d pings after a request that took longer than the cache lives", len(pings))
		}
		st.released(t, "after the request")
	})
}

// What a client sends and receives is the same with and without keep-alive, as long as
// the policy does not depend on the cache.
func TestKeepAliveChangesNoRequest(t *testing.T) {
	for _, policy := range []string{"none", "rolling-mask-5"} {
		var sent [2][]string
		for i, n := range []int{0, 9} {
			pause(t, sim.Options{Seed: 7}, session.Options{Policy: policy}, gateway.Options{KeepAlive: n}, func(t *testing.T, st *pausing) {
				for _, wait := range []time.Duration{time.Minute, 6 * time.Minute, 12 * time.Minute, 40 * time.Minute} {
					if len(st.history) < 6 {
						st.ask(t, 12_000)
					}
					time.Sleep(wait)
				}
				pings, asked := st.pings()
				if (len(pings) > 0) != (n > 0) {
					t.Errorf("%d pings with keep-alive %d", len(pings), n)
				}
				for _, e := range asked {
					sent[i] = append(sent[i], string(e.Body))
				}
			})
		}
		if fmt.Sprint(sent[0]) != fmt.Sprint(sent[1]) || len(sent[0]) != 3 {
			t.Errorf("policy %s: %d and %d requests, or their bodies differ", policy, len(sent[0]), len(sent[1]))
		}
	}
}

// A session that was redacted, also by another process, is not kept alive: its last request
// may have what was redacted.
func TestKeepAliveSendsNothingRedacted(t *testing.T) {
	pause(t, sim.Options{}, session.Options{Policy: "none"}, gateway.Options{KeepAlive: 4}, func(t *testing.T, st *pausing) {
		redact := func(pattern string) {
			t.Helper()
			for info, err := range st.sessions.Store().Sessions(t.Context(), "", storage.SessionQuery{}) {
				if err != nil {
					t.Fatal(err)
				}
				rep, err := session.Redact(t.Context(), st.sessions.Store(), info.SessionKey, session.Redaction{Patterns: []*regexp.Regexp{regexp.MustCompile(pattern)}, By: furl.Person})
				if err != nil || rep.Found == 0 {
					t.Fatalf("%+v, %v", rep, err)
				}
			}
		}
		st.ask(t, 15_000)
		if n, _ := st.gateway.Held(); n != 1 {
			t.Fatalf("%d requests are held, want 1", n)
		}
		redact("word $")
		time.Sleep(30 * time.Minute)
		if pings, _ := st.pings(); len(pings) != 0 {
			t.Fatalf("%d pings with what was redacted", len(pings))
		}
		st.released(t, "after the redaction")
		st.ask(t, 15_000) // the client still sends it
		st.released(t, "with a redacted message")
	})
}
