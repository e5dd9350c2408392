package session_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// settingOf returns a setting's value and where it comes from.
func settingOf(t *testing.T, s *session.Session, name string) string {
	t.Helper()
	for _, x := range s.Settings() {
		if x.Name == name {
			return x.Value + " " + x.From
		}
	}
	t.Fatalf("no setting %s", name)
	return ""
}

// C1, A4: settings are stored with the session, override those of all sessions, and
// name where their values come from.
func TestC1SettingsHaveOrigins(t *testing.T) {
	store := inmem.New()
	all := reopen(t, store, session.Options{Policy: "rolling", Settings: policy.Settings{RollingContext: new(true), Threshold: 0.5, ToolOptions: policy.ToolOptions{KeepTools: []string{"a"}}}})
	s := all.Create(storage.Meta{Model: "claude-opus-4-6"})
	appendAll(t, s, steps(t, 2, 10))
	head := s.Head()
	want := func(s *session.Session, values ...string) {
		t.Helper()
		for i := 0; i < len(values); i += 2 {
			if got := settingOf(t, s, values[i]); got != values[i+1] {
				t.Errorf("%s is %q, want %q", values[i], got, values[i+1])
			}
		}
	}
	want(s, "policy", "rolling configuration", "rolling_context", "on configuration", "context_threshold", "0.5 configuration",
		"context_limit", "1000000 default", "context_management_enabled", "on default", "pinned", " default", "keep_tools", "a configuration", "exclude_tools", " default")
	if err := s.Set(t.Context(), "policy", "compaction", "rolling_context", "off", "context_threshold", "0.7", "context_limit", "5000",
		"context_management_enabled", "false", "title", "mine", "pinned", "furl:1, furl:2.0", "keep_tools", "mcp__jira__*, bash", "exclude_tools", "none"); err != nil {
		t.Fatal(err)
	}
	read, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	set := []string{"policy", "compaction session", "rolling_context", "off session", "context_threshold", "0.7 session",
		"context_limit", "5000 session", "context_management_enabled", "off session", "title", "mine session", "pinned", "furl:1,furl:2.0 session", "keep_tools", "mcp__jira__*, bash session", "exclude_tools", "none session"}
	want(read, set...)
	// An error changes nothing, and names what is expected.
	for _, tt := range []struct{ name, value, want string }{
		{"polcy", "auto", "unknown setting \"polcy\": expected one of policy, context_threshold, "},
		{"policy", "fast", "unknown policy \"fast\""},
		{"rolling_context", "perhaps", "invalid value \"perhaps\" of setting rolling_context: expected on or off"},
		{"context_threshold", "1.5", "expected a number above 0 and at most 1"},
		{"context_threshold", "NaN", "expected a number above 0 and at most 1"},
		{"context_limit", "-1", "expected a positive number of tokens"},
		{"pinned", "furl:99", "furl:99 in session"},
		{"pinned", "x", "invalid handle"},
		{"recall_tools", "x", "unknown setting"},
	} {
		err := read.Set(t.Context(), "title", "other", tt.name, tt.value)
		if err == nil || !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want an ErrInvalid with %q", tt.name, tt.value, err, tt.want)
		}
	}
	want(read, set...)
	if got := read.Head(); got < head {
		t.Errorf("the head is %d", got)
	}
	for _, x := range read.Settings() {
		if err := read.Set(t.Context(), x.Name, ""); err != nil {
			t.Error(err)
		}
	}
	want(read, "policy", "auto default", "rolling_context", "off default", "context_threshold", " default", "context_limit", "1000000 default",
		"context_management_enabled", "on default", "pinned", " default")
	if got := settingOf(t, read, "title"); !strings.HasSuffix(got, "default") || strings.HasPrefix(got, "mine") {
		t.Errorf("the title is %q", got)
	}
}

// Settings that several processes change at once, while another records exchanges, are
// all kept.
func TestSettingsOfOthersAreKept(t *testing.T) {
	store := inmem.New()
	s := reopen(t, store, session.Options{}).Create(storage.Meta{})
	appendAll(t, s, steps(t, 1, 10))
	var work sync.WaitGroup
	for _, pair := range [][2]string{{"policy", "rolling"}, {"context_limit", "5000"}, {"rolling_context", "on"}, {"title", "mine"}} {
		other, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			if err := other.Set(t.Context(), pair[0], pair[1]); err != nil {
				t.Error(err)
			}
		})
	}
	for range 5 {
		fit, err := s.Fit(t.Context(), "claude-opus-4-6")
		if err != nil {
			t.Fatal(err)
		}
		reply := &protocol.Reply{Format: furl.FormatAnthropic, Usage: furl.Usage{Input: 100}, Messages: []*furl.Message{message(t, furl.RoleAssistant, text("done"))}}
		if err := s.Observe(t.Context(), fit, reply); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), message(t, furl.RoleUser, text("again"))); err != nil {
			t.Fatal(err)
		}
	}
	work.Wait()
	read, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	m := read.Meta()
	if m.Policy != "rolling" || m.Settings["context_limit"] != "5000" || m.Settings["rolling_context"] != "on" || m.Title != "mine" || m.Ledger == nil || m.Ledger.Days[0].Requests != 5 {
		t.Errorf("the metadata is %+v", m)
	}
}
