package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// clockJumps are what a clock may be set by: summer time done wrong, a machine
// without a battery.
var clockJumps = []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour}

// A clock that is set ahead or back, between a request and its answer or between
// two requests, changes nothing for the client: each request finds its session,
// is planned and recorded, and no time that is reported is negative.
func TestClockIsSet(t *testing.T) {
	for _, jump := range clockJumps {
		for _, when := range []string{"before the answer", "before the next request", "before the gateway starts again", "at every look"} {
			t.Run(fmt.Sprint(jump, " ", when), func(t *testing.T) {
				t.Parallel()
				c := newClock()
				asked := 0
				model := sim.NewAgent(&sim.AgentOptions{Steps: 60})
				player := sim.PlayerFunc(func(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
					if asked++; asked == 4 && when == "before the answer" {
						c.pass(jump)
					}
					return model.Play(ctx, req)
				})
				store := inmem.New()
				t.Cleanup(func() { store.Close() })
				now, looks := c.now, new(atomic.Int64)
				if when == "at every look" {
					now = func() time.Time { return c.now().Add(time.Duration(looks.Add(1)%2) * jump) }
				}
				sess, o := &session.Options{Window: 12_000, Now: now}, &gateway.Options{Now: now}
				st := newFixtureOn(t, store, &sim.Options{Window: 12_000, Player: player}, sess, o)
				a := newAgent(furl.FormatAnthropic, true)
				steps := 0
				for range 40 {
					c.pass(time.Minute)
					if steps++; steps == 4 {
						switch when {
						case "before the next request":
							c.pass(jump)
						case "before the gateway starts again":
							st.gateway.Close()
							c.pass(jump)
							st.begin(t, store, sess, o)
						}
					}
					resp, answer := st.post(t, a.path(), a.body())
					if resp.StatusCode != http.StatusOK {
						t.Fatalf("status %d: %s", resp.StatusCode, answer)
					}
					if timing := resp.Header.Get("Server-Timing"); timing == "" || strings.Contains(timing, "=-") {
						t.Errorf("Server-Timing: %q", timing)
					}
					if note := resp.Header.Get("X-Furl-Note"); note != "" {
						t.Errorf("a request was not planned: %s", note)
					}
					if !a.take(t, answer, few) {
						break
					}
				}
				s := st.only(t)
				if n := len(s.Reductions()); n == 0 {
					t.Error("nothing was hidden")
				}
				if n, want := len(s.Records(0)), 2*steps; n < want {
					t.Errorf("%d records of %d requests", n, steps)
				}
				for name, value := range metricsOf(t, st) {
					if value < 0 {
						t.Errorf("metric %s is %v", name, value)
					}
				}
			})
		}
	}
}

// A clock that is set back does not make the log silent about denied requests.
func TestDeniedIsLoggedWhenTheClockIsSetBack(t *testing.T) {
	c := newClock()
	var log strings.Builder
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{ClientKeys: []string{"key"}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: c.now})
	for _, jump := range append([]time.Duration{0}, clockJumps...) {
		c.pass(jump)
		st.gateway.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/furl/v1/sessions", nil))
	}
	if n := strings.Count(log.String(), `msg="request denied"`); n != 1+len(clockJumps) {
		t.Errorf("the log has %d lines, want %d", n, 1+len(clockJumps))
	}
}

// A summary that was of no use, or a provider that had too much to do, is not
// waited for longer because the clock is set back.
func TestSummaryIsAskedForWhenTheClockIsSetBack(t *testing.T) {
	fault, err := sim.ParseFault("529 retry-after=600")
	if err != nil {
		t.Fatal(err)
	}
	refused := sim.Text("a summary that does not arrive")
	refused.Fault = &fault
	for name, reply := range map[string]sim.Reply{"of no use": sim.Text(" "), "refused": refused} {
		for _, jump := range []time.Duration{-time.Hour, -365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, " ", jump), func(t *testing.T) {
				t.Parallel()
				c := newClock()
				p := &gated{reply: func(*protocol.Request) (sim.Reply, error) { return reply, nil }}
				st := compacting(t, p, &gateway.Options{Now: c.now})
				a := newAgent(furl.FormatAnthropic, true)
				st.until(t, a, p, 1)
				c.pass(jump)
				st.until(t, a, p, 2)
			})
		}
	}
}
