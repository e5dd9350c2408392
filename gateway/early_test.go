package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// A provider that says only in its stream that a prompt is too long does not
// get to say it to the client either.
func TestOverflowInStreamRecovered(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, split := range []string{"", " split=bytes", " ping"} {
			t.Run(string(format)+split, func(t *testing.T) {
				f, err := sim.ParseFault("overflow=stream every=8" + split)
				if err != nil {
					t.Fatal(err)
				}
				st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 14}), Faults: []sim.Fault{f}},
					&session.Options{Window: 30_000}, nil)
				a := &agent{format: format, stream: true, model: modelOf(format)}
				a.say("Look at everything there is.")
				recovered := 0
				for more := true; more; {
					before := len(st.sim.Requests())
					resp, answer := st.post(t, a.path(), a.body())
					if resp.StatusCode != http.StatusOK {
						t.Fatalf("status %d: %s", resp.StatusCode, answer)
					}
					if len(st.sim.Requests()) == before+2 {
						recovered++
						if resp.Header.Get("X-Furl-Reductions") == "0" || resp.Header.Get("X-Furl-Session") == "" {
							t.Errorf("the headers do not tell of it: %v", resp.Header)
						}
					}
					more = a.take(t, answer, output)
				}
				if recovered == 0 {
					t.Error("no overflow was recovered from")
				}
				s, err := st.sessions.Find(t.Context(), session.Latest)
				if err != nil {
					t.Fatal(err)
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the session: %v %v", problems, err)
				}
			})
		}
	}
}

func modelOf(format furl.Format) string {
	if format == furl.FormatAnthropic {
		return "claude-sonnet-4-5"
	}
	return "gpt-5"
}

// The first event that says something reaches the client while the provider
// still has to send the next one.
func TestContentIsNotHeldBack(t *testing.T) {
	for _, tc := range []struct {
		format furl.Format
		first  string // event that says something
		after  int    // events
	}{
		{furl.FormatAnthropic, "event: content_block_start", 1},
		{furl.FormatChat, `"delta":{"content":"`, 1},
		{furl.FormatResponses, "event: response.output_item.added", 2},
	} {
		t.Run(string(tc.format), func(t *testing.T) {
			gate := make(chan struct{}, tc.after)
			for range tc.after {
				gate <- struct{}{}
			}
			wait := func(ctx context.Context, _ time.Duration) error {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			st := newFixture(t, &sim.Options{Pace: 1, Wait: wait}, nil, nil)
			a := &agent{format: tc.format, stream: true, model: modelOf(tc.format)}
			a.say("hello")
			resp, err := http.DefaultClient.Do(clientRequest(t, st.front, a))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for lines := bufio.NewScanner(resp.Body); ; {
				if !lines.Scan() {
					t.Fatal("the stream ended")
				}
				if strings.Contains(lines.Text(), tc.first) {
					break
				}
			}
			close(gate)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Error(err)
			}
		})
	}
}

func clientRequest(t testing.TB, srv *httptest.Server, a *agent) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, srv.URL+a.path(), bytes.NewReader(a.body()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer planted-secret-key")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return req
}
