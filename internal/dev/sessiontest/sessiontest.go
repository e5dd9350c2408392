// Package sessiontest has what tests of sessions share.
package sessiontest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// Letters counts four bytes a token: fast, and no vocabulary to load.
type Letters struct{}

func (Letters) Count(text string) int { return (len(text) + 3) / 4 }

// Clock goes on by a minute with each look.
func Clock() func() time.Time {
	var n atomic.Int64
	return func() time.Time {
		return time.Date(2026, 11, 21, 9, int(n.Add(1)), 0, 0, time.UTC)
	}
}

// IDs gives s1, s2, …
func IDs() func() furl.SessionID {
	var n atomic.Int64
	return func() furl.SessionID { return furl.SessionID(fmt.Sprintf("s%d", n.Add(1))) }
}

// Open makes sessions in memory.
func Open(t testing.TB, o session.Options) (*session.Sessions, storage.Store) {
	t.Helper()
	store := inmem.New()
	return Reopen(t, store, o), store
}

// Reopen gives the sessions in a store, as another process has them.
func Reopen(t testing.TB, store storage.Store, o session.Options) *session.Sessions {
	t.Helper()
	if o.Counter == nil {
		o.Counter = Letters{}
	}
	if o.Now == nil {
		o.Now = Clock()
	}
	if o.NewID == nil {
		o.NewID = IDs()
	}
	all, err := session.New(store, &o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ModelOf is what the session takes a model to be.
func ModelOf(s *session.Session, name string) (m furl.Model) {
	s.Internal().Read(func(c *open.Change) { m = c.Model(name) })
	return m
}

// Log is a copy of the session's log.
func Log(t testing.TB, s *session.Session) *furl.Log {
	t.Helper()
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		t.Fatal(err)
	}
	return log
}

// Message is one of the Messages format.
func Message(t testing.TB, role furl.Role, blocks ...furl.Block) *furl.Message {
	t.Helper()
	m, err := anthropic.Codec.NewMessage(role, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Text is a block of words.
func Text(s string) furl.Block { return furl.Block{Kind: furl.KindText, Text: s} }

// Call is a block with a tool's call.
func Call(id, name, args string) furl.Block {
	return furl.Block{Kind: furl.KindCall, ID: id, Name: name, Args: json.RawMessage(args)}
}

// Result is a block with a call's result.
func Result(id, s string) furl.Block { return furl.Block{Kind: furl.KindResult, ID: id, Text: s} }

// Steps is a conversation of n Steps, each with a call and a result of so many
// bytes.
func Steps(t testing.TB, n, size int) []*furl.Message {
	t.Helper()
	list := []*furl.Message{Message(t, furl.RoleUser, Text("Find out why the build is slow."))}
	for i := range n {
		id := fmt.Sprintf("toolu_%03d", i)
		list = append(list,
			Message(t, furl.RoleAssistant, Text(fmt.Sprintf("Reading file %d.", i)), Call(id, "read", fmt.Sprintf(`{"path":"src/file_%d.go"}`, i))),
			Message(t, furl.RoleUser, Result(id, fmt.Sprintf("file %d: marker_%d %s", i, i, strings.Repeat("words of it ", size/12)))))
	}
	return list
}

// AppendAll appends messages to a session.
func AppendAll(t testing.TB, s *session.Session, msgs []*furl.Message) {
	t.Helper()
	if _, err := s.Append(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
}

// Encoded is a view as it would be sent.
func Encoded(t testing.TB, v *furl.View) string {
	t.Helper()
	list, err := anthropic.Codec.EncodeView(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Checked fails the test if a session breaks a law.
func Checked(t testing.TB, s *session.Session) {
	t.Helper()
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("the check found %v, %v", problems, err)
	}
}

// Still is a clock that does not move, so that records of both can be compared.
func Still() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }
