// Package exchange handles requests of clients that resend their whole history. It
// finds the session of a request and the position where the history continues,
// appends the new messages, plans, encodes and sends the body, and records the
// reply. The caller passes the function that posts a body (SendOptions.Post).
//
// A request passes through these files: receive.go, begin.go, match.go (which
// session), attach.go and index.go (which position), recall.go (recall tools),
// encode.go, send.go, refusal.go, overflow.go, thinking.go, commit.go, reply.go or, with
// recall tools, joined.go and answer.go, exchange.go. Requests without a client start in
// compose.go and end in ask.go.
package exchange

import (
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/session"
)

// Sessions are the sessions of a tenant, for requests of clients.
type Sessions struct {
	*open.Sessions
	sessions *session.Sessions
}

// Of returns the Sessions for the given sessions of a tenant.
func Of(all *session.Sessions) *Sessions { return &Sessions{all.Internal(), all} }

// tx is a change, with what is known of the session's exchanges.
type tx struct {
	*open.Change
	*open.Exchanges
	all *Sessions
	s   *open.Session
}

func (a *Sessions) tx(s *open.Session, c *open.Change) *tx { return &tx{c, c.Exchanges(), a, s} }

// read calls f with the session locked.
func (a *Sessions) read(s *open.Session, f func(t *tx)) {
	s.Read(func(c *open.Change) { f(a.tx(s, c)) })
}
