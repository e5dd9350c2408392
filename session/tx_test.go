package session_test

import (
	"errors"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// An update is recorded with all its changes or, after an error, with none. Another
// process that was faster is not overwritten.
func TestUpdate(t *testing.T) {
	store := inmem.New()
	all, other := reopen(t, store, session.Options{}), reopen(t, store, session.Options{})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 1, 10))
	theirs, err := other.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	change := func(tx *open.Change) error {
		for _, words := range []string{"one", "two"} {
			if _, err := tx.AppendMessage(message(t, furl.RoleAssistant, text(words)), tx.Counter("m")); err != nil {
				return err
			}
		}
		m := tx.Meta().Clone()
		m.Title, m.Settings = "changed", map[string]string{"context_limit": "5000"}
		tx.SetMeta(m)
		return nil
	}
	refused := errors.New("refused")
	before, head := s.Meta(), s.Head()
	inside := s.Internal()
	if err := inside.Update(t.Context(), open.Committed, func(tx *open.Change) error { return errors.Join(change(tx), refused) }); !errors.Is(err, refused) {
		t.Errorf("the error is %v, want that of the function", err)
	}
	if err := inside.Try(change); err != nil {
		t.Error(err)
	}
	if got := s.Meta(); s.Head() != head || got.Title != before.Title || len(got.Settings) > 0 {
		t.Errorf("after an error and a try the head is %d, want %d, and the metadata %+v", s.Head(), head, got)
	}
	appendAll(t, theirs, []*furl.Message{message(t, furl.RoleAssistant, text("meanwhile"))})
	if err := inside.Update(t.Context(), open.Committed, change); err != nil {
		t.Fatal(err)
	}
	again, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if again.Head() != head+3 || again.Meta().Title != "changed" || modelOf(again, "m").Window != 5000 {
		t.Errorf("the head is %d, want %d; title %q", again.Head(), head+3, again.Meta().Title)
	}
	checked(t, again)
}

// Metadata that is recorded with a reply does not undo what another process has set
// since the session was read.
func TestReplyKeepsSettingsOfOthers(t *testing.T) {
	store := inmem.New()
	all, other := reopen(t, store, session.Options{}), reopen(t, store, session.Options{})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 1, 10))
	fit, err := s.Fit(t.Context(), "claude-opus-4-6")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"policy": "rolling", "context_limit": "5000"} {
		if err := theirs.Set(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	reply := &protocol.Reply{Format: furl.FormatAnthropic, Usage: furl.Usage{Input: 100}, Messages: []*furl.Message{message(t, furl.RoleAssistant, text("done"))}}
	if err := s.Observe(t.Context(), fit, reply); err != nil {
		t.Fatal(err)
	}
	read, err := reopen(t, store, session.Options{}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	m := read.Meta()
	if m.Policy != "rolling" || m.Settings["context_limit"] != "5000" || m.Ledger == nil || m.Model != "claude-opus-4-6" {
		t.Errorf("the metadata is %+v, want the other's policy and setting, and the model and ledger of the reply", m)
	}
}
