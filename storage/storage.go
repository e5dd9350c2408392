// Package storage describes stores of sessions: [Store], which all of them
// implement, and what some can do beyond it: search, watch, delete, check. Callers
// find each ability by assertion. It also has the rules for session ids and
// batches that every store applies.
package storage

import (
	"context"
	"iter"
	"time"

	"github.com/furlhq/furl"
)

// EarlyAppender is the ability to tell of an append as soon as it is committed,
// where the store goes on to wait for the disk before it acknowledges one.
type EarlyAppender interface {
	// AppendEarly is Store.Append that calls committed, once, when the batch
	// is committed: whoever reads the session sees it, and it outlives the
	// process, but perhaps not yet the loss of power. An error before that
	// is Append's; one after it says that this is still so. The end of ctx
	// does nothing after it.
	AppendEarly(ctx context.Context, key furl.SessionKey, b Batch, committed func()) error
}

// Stager is the ability to do the part of an append that needs no transaction ahead of it,
// while the caller waits for something else.
type Stager interface {
	// Stage checks, encodes and compresses a batch, which must not be changed afterwards. It
	// writes nothing and holds nothing of the store.
	Stage(ctx context.Context, key furl.SessionKey, b Batch) (Staged, error)
}

// Staged is a batch that is ready to be appended, once. It may be discarded.
type Staged interface {
	// Append is EarlyAppender.AppendEarly.
	Append(ctx context.Context, committed func()) error
}

// ContentStore is the ability to store the contents of batches
// (Batch.Contents). They are committed with the records of their batch, belong
// to its session, and are deleted with it.
type ContentStore interface {
	// Content returns the session's content with a SHA-256. If there is none,
	// the error wraps ErrNoContent; an unknown session is an error wrapping
	// ErrNoSession. The caller owns the bytes.
	Content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error)
}

// Deleter is the ability to remove a session whole: its records, the bodies no
// other session of the tenant has, its index pages and vectors; the bytes do
// not stay in free pages. A session that does not exist is an error wrapping
// ErrNoSession.
type Deleter interface {
	Delete(ctx context.Context, key furl.SessionKey) error
}

// ManyDeleter is a Deleter for which it costs less to remove many sessions
// together. Those that do not exist are none of its errors. Where it gives an
// error, some may be gone.
type ManyDeleter interface {
	Deleter
	DeleteMany(ctx context.Context, keys []furl.SessionKey) error
}

// TenantLister is the ability to name the tenants of a store.
type TenantLister interface {
	// Tenants gives the tenants that have sessions, ordered by their names.
	Tenants(ctx context.Context) ([]furl.Tenant, error)
}

// Watcher is the ability to tell of appends as they happen.
type Watcher interface {
	// Watch gives a channel that receives a value some time after each
	// append to the session (any of the tenant's, if Session is ""), also
	// by another process where the store can tell; several appends may give
	// one value. A reader keeps a cursor, reads what is above it, waits for
	// a value, and reads again. Watching ends with ctx, which closes the
	// channel.
	Watch(ctx context.Context, key furl.SessionKey) (<-chan struct{}, error)
}

// Problem is something a check of a store found.
type Problem struct {
	Session furl.SessionKey // zero: of the store as a whole
	Seq     furl.Seq        // 0: of the session as a whole
	Text    string          // what is wrong, for people
	// Derived says that what is wrong can be rebuilt from the records, and
	// Mended that it was.
	Derived, Mended bool
}

// Exclusive is the ability of a store to tell that no other process can still be recording a
// reply to an early request.
type Exclusive interface {
	// AloneAt returns when this process opened the store, if no other process had it open for
	// writing; else, or if the store cannot know, the zero time.
	AloneAt() time.Time
}

// Checker is the ability to hold a store against its own invariants.
type Checker interface {
	// Check reads everything and gives what is wrong. With mend it rebuilds
	// what can be rebuilt; records are never touched. It does not fold
	// sessions, see package session for that.
	Check(ctx context.Context, mend bool) iter.Seq2[Problem, error]
	// Stats tells the sizes of the store's parts.
	Stats(ctx context.Context) (Stats, error)
}

// Stats are sizes of a store, of all tenants.
type Stats struct {
	Sessions, Records, Messages int64
	// MessageBytes are the messages as they were on the wire, each as often
	// as it was appended.
	MessageBytes int64
	// Bodies, Index, Vectors and Total are bytes that the store takes up
	// for message bodies, for the pages of the search index, for vectors,
	// and altogether.
	Bodies, Index, Vectors, Total int64
	// Log are those bytes of Total that a log of the newest changes takes
	// up: it is used again and does not grow with the store.
	Log int64
	// Format is the version of the store's format.
	Format int
	// Place says where the store is, without credentials.
	Place string
}
