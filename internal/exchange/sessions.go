// Package exchange is what a client needs that resends its whole history with each
// request: it finds the session and the place in it where the history goes on,
// appends what is new, has the session plan, makes the body to send, and records
// the reply. Package furlhttp is this with a connection on each side.
//
// A request takes these files: decode.go, begin.go, match.go (which session),
// attach.go and places.go (where in it), memory.go (recall tools), encode.go,
// commit.go, overflow.go, answer.go, exchange.go.
package exchange

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// Sessions are the sessions of a tenant, and what is known of requests to them.
type Sessions struct {
	*session.Sessions
	*shared
}

// shared is what is known of the requests of all tenants. It is kept with the
// sessions (session.Sessions.Memo).
type shared struct {
	mu    sync.Mutex
	hints map[hintKey]furl.SessionID
	// reworded are sessions by the chain that their beginning has with the first
	// answer in a client's words, see byAnswer.
	reworded map[rewordedKey]furl.SessionID

	decoded  decoded // requests
	failures atomic.Int64
}

type hintKey struct {
	tenant furl.Tenant
	hint   string
}

type sharedKey struct{}

// Of returns the exchanges of sessions.
func Of(all *session.Sessions) *Sessions {
	return &Sessions{all, all.Memo(sharedKey{}, func() session.Memo {
		o := all.Options()
		return &shared{
			hints:    make(map[hintKey]furl.SessionID),
			reworded: make(map[rewordedKey]furl.SessionID),
			decoded:  decoded{seed: maphash.MakeSeed(), number: o.Keep, size: o.KeepBytes / 2},
		}
	}).(*shared)}
}

// Failures counts the exchanges that could not be prepared since the program started.
func (a *shared) Failures() int64 { return a.failures.Load() }

// Trim implements session.Memo.
func (a *shared) Trim() bool { return a.decoded.rest() }

// Drop implements session.Memo.
func (a *shared) Drop() {
	a.decoded.clear()
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.hints)
	clear(a.reworded)
}

// Deleted implements session.Memo.
func (a *shared) Deleted(key furl.SessionKey) {
	a.decoded.clear() // which has its texts
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, v := range a.hints {
		if v == key.Session && k.tenant == key.Tenant {
			delete(a.hints, k)
		}
	}
}

// tx is a session while nothing else uses it, with what is derived from its log and
// known of requests to it.
type tx struct {
	*session.Tx
	*local
	all *Sessions
	s   *session.Session
}

type local struct {
	places  places
	pending map[*Exchange]struct{} // exchanges under way
	opened  bool                   // this process has stored its first record
}

type localKey struct{}

func (a *Sessions) tx(s *session.Session, t *session.Tx) *tx {
	return &tx{t, t.Memo(localKey{}, func() any { return new(local) }).(*local), a, s}
}

// read calls f while nothing else uses the session.
func (a *Sessions) read(s *session.Session, f func(t *tx)) {
	_ = s.Read(func(t *session.Tx) error {
		f(a.tx(s, t))
		return nil
	})
}
