package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// If the gateway is killed when a client without an id has just read the end of its first
// reply, the reply may be recorded or not. If it is killed while the client reads the reply, the
// client sends the request again at once. The conversation stays in its session in all cases.
//
// FURL_KILL_ROUNDS=200 go test -run TestKillAtFirstAnswer ./cmd/furl kills it two
// hundred times.
func TestKillAtFirstAnswer(t *testing.T) {
	home := t.TempDir()
	place := home + "/furl.db"
	provider := httptest.NewServer(sim.New(&sim.Options{Pace: 5 * time.Millisecond}))
	defer provider.Close()
	rounds := killRounds(t, 6) // each format, killed early and at the end
	begin := func() *process {
		return serve(t, home, "--store", place, "--anthropic", provider.URL, "--openai", provider.URL)
	}
	ends := &endKiller{}
	ask := func(c *sim.Client, words string) {
		t.Helper()
		c.URL = ends.url
		if err := c.Say(words); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var before *sim.Client
	unrecorded := 0
	for n := range rounds + 1 {
		p := begin()
		ends.url, ends.process = p.url, nil
		if before != nil {
			ask(before, "Go on.")
		}
		if n < rounds {
			format := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}[n%3]
			before = &sim.Client{Format: format, Model: "gpt-5", Stream: true, Tools: []byte("[]"), HTTP: &http.Client{Transport: ends}}
			if format == furl.FormatAnthropic {
				before.Model = "claude-sonnet-4-5"
			}
			ends.process, ends.early = p, n%2 == 1
			if words := fmt.Sprintf("Conversation %d asks.", n); !ends.early {
				ask(before, words)
				unrecorded += questionsAlone(t, place)
				continue
			}
			if err := before.Say(fmt.Sprintf("Conversation %d asks.", n)); err != nil {
				t.Fatal(err)
			}
			before.URL = p.url
			if reply, err := before.Send(t.Context()); err == nil {
				t.Fatalf("a reply that was cut off is %v", reply)
			}
			p = begin()
			ends.process, before.URL = nil, p.url
			if _, err := before.Send(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.kill()
		} else {
			p.kill()
		}
	}
	t.Logf("%d rounds, in %d of them the answer was not recorded", rounds, unrecorded)
	found := make(map[string]int)
	eachSession(t, place, func(s *session.Session) {
		found[s.Meta().Title]++
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("session %s: %v %v", s.ID(), problems, err)
		}
		if n := len(s.Branches()); n != 1 {
			t.Errorf("%s has %d branches", s.Meta().Title, n)
		}
	})
	split := 0
	for n := range rounds {
		if found[fmt.Sprintf("Conversation %d asks.", n)] != 1 {
			split++
		}
	}
	if split > 0 || len(found) != rounds {
		t.Errorf("%d of %d conversations are split: %v", split, rounds, found)
	}
}

// endKiller kills a gateway when its client reads the last event of a reply, or early: the
// first one.
type endKiller struct {
	url     string
	process *process // nil: nothing is killed
	early   bool
}

func (k *endKiller) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := new(http.Transport).RoundTrip(req)
	if err == nil && k.process != nil {
		resp.Body = &ending{ReadCloser: resp.Body, process: k.process, early: k.early}
	}
	return resp, err
}

// ending is the body of a response up to its last event, or the first.
type ending struct {
	io.ReadCloser
	process *process
	early   bool
	read    []byte
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.read = append(e.read, p[:n]...)
	if at := bytes.Index(e.read, []byte("\n\n")); e.early && at >= 0 {
		e.process.kill()
		return max(0, n-(len(e.read)-at-2)), io.ErrUnexpectedEOF
	}
	for _, end := range []string{`"type":"message_stop"`, "data: [DONE]", `"type":"response.completed"`} {
		if at := bytes.Index(e.read, []byte(end)); at >= 0 && bytes.Contains(e.read[at:], []byte("\n\n")) {
			e.process.kill()
			return n, io.EOF
		}
	}
	return n, err
}

func eachSession(t *testing.T, place string, f func(s *session.Session)) {
	t.Helper()
	store, err := sqlite.Open(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		f(s)
	}
}

// questionsAlone counts the sessions with one message.
func questionsAlone(t *testing.T, place string) (n int) {
	t.Helper()
	eachSession(t, place, func(s *session.Session) {
		messages := 0
		for _, r := range s.Records(0) {
			if _, ok := r.Body.(*furl.Message); ok {
				messages++
			}
		}
		if messages == 1 {
			n++
		}
	})
	return n
}
