package sim_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// The journal has a line for each request, without credentials; the number of
// kept requests is bounded, and the bill counts all.
func TestJournal(t *testing.T) {
	var lines bytes.Buffer
	s, srv := serve(t, &sim.Options{Journal: &lines, Keep: 3, KeepBodies: true})
	d := chatDialect{}
	for range 10 {
		post(t, srv, d.path(), d.body("gpt-5.2", toList(d.user("my words")), false), "Authorization", "Bearer planted-secret", "X-Api-Key", "planted-secret")
	}
	if n := strings.Count(lines.String(), "\n"); n != 10 {
		t.Errorf("%d lines", n)
	}
	if strings.Contains(lines.String(), "planted-secret") || strings.Contains(lines.String(), "my words") {
		t.Errorf("the journal contains a credential: %s", lines.String())
	}
	entries := s.Requests()
	if len(entries) != 3 || entries[2].N != 10 || s.Bill().Requests != 10 {
		t.Errorf("%d entries, %+v", len(entries), s.Bill())
	}
	for _, e := range entries {
		if !strings.Contains(string(e.Body), "my words") || !json.Valid(e.Answer) || e.Header.Get("Content-Type") == "" {
			t.Errorf("%+v", e)
		}
		for _, values := range e.Header {
			if strings.Contains(strings.Join(values, " "), "planted-secret") {
				t.Errorf("a header contains a credential: %v", e.Header)
			}
		}
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// A journal write error is reported and does not stop the sim.
func TestBrokenJournal(t *testing.T) {
	s, srv := serve(t, &sim.Options{Journal: full{}})
	d := chatDialect{}
	if a := post(t, srv, d.path(), d.body("gpt-5.2", toList(d.user("hi")), false)); a.status != 200 {
		t.Errorf("status %d", a.status)
	}
	if err := s.Err(); err == nil || err.Error() != "disk full" {
		t.Errorf("%v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

type simpleError string

func (e simpleError) Error() string { return string(e) }

const errFull = simpleError("disk full")
