package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// got is what a client got.
type got struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func fetch(t testing.TB, srv *httptest.Server, path string, body []byte) got {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, srv.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer planted-secret-key")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, b, err}
}

// Whatever goes wrong at the provider, the client gets what it would have got
// from it, byte for byte; where the connection breaks, it is told so in the
// format's own way. The session holds what was delivered.
func TestFaults(t *testing.T) {
	clock := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"", "429 retry-after=2", "529", "500", "503", "400", "slow=50ms", "cut=4", "cut=9", "error=4", "ping",
		"split=utf8", "split=lines", "split=bytes", "args=odd", "args=interleaved", "redirect=http://127.0.0.1:9/", "overflow", "overflow=stream",
	} {
		for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s stream=%v", text, format, stream), func(t *testing.T) {
					t.Parallel()
					options := func() *sim.Options {
						o := &sim.Options{Seed: 7, Now: func() time.Time { return clock }, Player: sim.NewAgent(&sim.AgentOptions{Parallel: 2})}
						if text != "" {
							f, err := sim.ParseFault(text)
							if err != nil {
								t.Fatal(err)
							}
							o.Faults = []sim.Fault{f}
						}
						return o
					}
					direct := httptest.NewServer(sim.New(options()))
					defer direct.Close()
					st := newFixture(t, options(), nil, nil)
					model := "claude-sonnet-4-5"
					if format != furl.FormatAnthropic {
						model = "gpt-5"
					}
					a := &agent{format: format, stream: stream, model: model}
					a.say("Look at naïve 日本語 things 🙂.")
					want, have := fetch(t, direct, a.path(), a.body()), fetch(t, st.front, a.path(), a.body())
					compare(t, want, have, strings.HasPrefix(text, "cut") && stream)
					settled(t, st, a, have)
				})
			}
		}
	}
}

func compare(t *testing.T, want, have got, cut bool) {
	t.Helper()
	if want.status != have.status {
		t.Fatalf("status %d, want %d: %s", have.status, want.status, have.body)
	}
	for _, name := range []string{"Content-Type", "Retry-After", "Location", "Request-Id", "X-Request-Id"} {
		if want.header.Get(name) != have.header.Get(name) {
			t.Errorf("%s: %q, want %q", name, have.header.Get(name), want.header.Get(name))
		}
	}
	if !cut {
		if !bytes.Equal(want.body, have.body) {
			t.Errorf("the body is\n%s\nwant\n%s", have.body, want.body)
		}
		if (want.err == nil) != (have.err == nil) {
			t.Errorf("error %v, want %v", have.err, want.err)
		}
		return
	}
	// The connection broke: all that came, and then an error of the format.
	if !bytes.HasPrefix(have.body, want.body) {
		t.Fatalf("the body is\n%s\nwant first\n%s", have.body, want.body)
	}
	if want.err != nil && have.err == nil && !bytes.Contains(have.body[len(want.body):], []byte("cut off")) {
		t.Errorf("a broken stream ends as if it were whole: %s", have.body[len(want.body):])
	}
}

// settled checks that the session can go on: it is sound, and holds the words
// that the client got.
func settled(t *testing.T, st *fixture, a *agent, have got) {
	t.Helper()
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if errors.Is(err, storage.ErrNoSession) {
		return // nothing was answered
	}
	if err != nil {
		t.Fatal(err)
	}
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
	if have.status != http.StatusOK || have.err != nil {
		return
	}
	hits, err := s.Search(t.Context(), "naïve", session.SearchOptions{Scope: session.Everywhere})
	if err != nil || len(hits) == 0 {
		t.Errorf("what was asked is not found: %v %v", hits, err)
	}
}

// A provider that says a prompt is too long never gets to say it to the client.
func TestOverflowRecovered(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", format, stream), func(t *testing.T) {
				// furl does not know that the window is so small.
				st := newFixture(t, &sim.Options{Window: 16_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})}, nil, nil)
				a := newAgent(format, stream)
				a.caches = true // else hiding pays at once, and the prompt stays small
				for a.step(t, st, output) {
				}
				refused := 0
				for _, r := range st.sim.Requests() {
					if r.Verdict != sim.VerdictOK {
						refused++
					}
				}
				if refused != 1 {
					t.Errorf("%d requests were refused, want 1: the limit is known after the first", refused)
				}
			})
		}
	}
}
