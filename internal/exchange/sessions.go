// Package exchange handles requests of clients that resend their whole history. It
// finds the session of a request and the position where the history continues,
// appends the new messages, plans, encodes the body to send, and records the
// reply. It does no network I/O; package furlhttp does.
//
// A request passes through these files: decode.go, begin.go, match.go (which
// session), attach.go and index.go (which position), recall.go (recall tools),
// encode.go, commit.go, overflow.go, thinking.go, answer.go, exchange.go.
package exchange

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/session"
)

// Sessions are the sessions of a tenant, with the state of matching requests to
// them.
type Sessions struct {
	*session.Sessions
	allSessions
	*shared
}

// What package session offers to this package.
type (
	allSessions = transact.Sessions[*session.Session]
	sessionTx   = transact.Tx[*session.Fit]
	preparation = transact.Preparation[*session.Fit]
)

// inside returns what package session offers to this package for one session.
func inside(s *session.Session) transact.Session[*session.Fit] {
	return transact.OfSession(s).(transact.Session[*session.Fit])
}

// shared is the state of all tenants. It is stored with the sessions; see
// transact.Sessions.Memo.
type shared struct {
	mu    sync.Mutex
	hints map[hintKey]furl.SessionID // cache
	// reworded caches sessions by the chain of their start with the first reply
	// as the client has reworded it; see byFirstReply.
	reworded map[rewordedKey]furl.SessionID

	// threads caches where the conversation of a thread continues, by the id of its
	// newest reply; see thread.go.
	threads map[threadKey]threadPlace

	newest map[furl.Tenant]newestList // cache; see overlap.go

	decodes  decodeCache
	failures atomic.Int64
}

type hintKey struct {
	tenant furl.Tenant
	hint   string
}

type sharedKey struct{}

// Of returns the Sessions for the given sessions of a tenant.
func Of(all *session.Sessions) *Sessions {
	inner := transact.OfSessions(all).(allSessions)
	return &Sessions{all, inner, inner.Memo(sharedKey{}, func() transact.Memo {
		o := all.Options()
		return &shared{
			hints:    make(map[hintKey]furl.SessionID),
			reworded: make(map[rewordedKey]furl.SessionID),
			threads:  make(map[threadKey]threadPlace),
			newest:   make(map[furl.Tenant]newestList),
			decodes:  decodeCache{seed: maphash.MakeSeed(), maxPrefixes: o.Keep, maxBytes: o.KeepBytes / 2},
		}
	}).(*shared)}
}

// Failures returns the number of exchanges that could not be recorded or planned
// since the program started.
func (a *shared) Failures() int64 { return a.failures.Load() }

// Trim implements transact.Memo.
func (a *shared) Trim() bool { return a.decodes.trimIdle() }

// Drop implements transact.Memo.
func (a *shared) Drop() {
	a.decodes.clear()
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.hints)
	clear(a.reworded)
	clear(a.threads)
	clear(a.newest)
}

// Deleted implements transact.Memo.
func (a *shared) Deleted(key furl.SessionKey) {
	a.decodes.clear() // it may hold the session's texts
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.newest, key.Tenant)
	for k, v := range a.hints {
		if v == key.Session && k.tenant == key.Tenant {
			delete(a.hints, k)
		}
	}
}

// tx is a transact.Tx with the index of its log and the state of its exchanges.
type tx struct {
	sessionTx
	*sessionState
	all *Sessions
	s   *session.Session
}

// sessionState is the state of one session.
type sessionState struct {
	index   logIndex
	items   itemIndex
	pending map[*Exchange]struct{} // exchanges in flight
	opened  bool                   // this process has stored the session's first record
	// committed are the heads (Fit.Head) of the first and the latest request of the
	// exchange that this process has committed last.
	committed struct{ first, last furl.Seq }
}

type localKey struct{}

func (a *Sessions) tx(s *session.Session, t sessionTx) *tx {
	return &tx{t, t.Memo(localKey{}, func() any { return new(sessionState) }).(*sessionState), a, s}
}

// read calls f with the session locked.
func (a *Sessions) read(s *session.Session, f func(t *tx)) {
	_ = inside(s).Read(func(t sessionTx) error {
		f(a.tx(s, t))
		return nil
	})
}
