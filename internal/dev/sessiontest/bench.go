package sessiontest

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// BenchSizes are sessions of so many messages, of about 2 KB each.
var BenchSizes = []int{2000, 10_000}

// BenchSession is a session of so many messages that has had a request.
func BenchSession(b *testing.B, n int) (*session.Sessions, *session.Session) {
	b.Helper()
	all := Reopen(b, inmem.New(), session.Options{Policy: "auto", Window: 200_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	if _, err := s.Append(b.Context(), Steps(b, n/2, 3000)[:n-1]...); err != nil {
		b.Fatal(err)
	}
	fit, err := s.Fit(b.Context(), "claude-sonnet-4-5")
	if err != nil {
		b.Fatal(err)
	}
	reply := &protocol.Reply{ID: "r", Usage: furl.Usage{Input: fit.Budget.Size}, Messages: []*furl.Message{Message(b, furl.RoleAssistant, Text("done"))}}
	if err := s.Observe(b.Context(), fit, reply); err != nil {
		b.Fatal(err)
	}
	return all, s
}
