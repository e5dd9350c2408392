package storage

import (
	"context"
	"iter"

	"github.com/furlhq/furl"
)

// Searchable is the ability of a store to keep the pages of a search index
// beside the records. The pages are derived: all of them can be dropped and
// built again. What they mean is package recall's business; a store sees a
// bucket number, a session, a segment number and bytes, and keeps them so that
// one bucket of one session is one lookup, and one bucket of all sessions of a
// tenant one scan.
type Searchable interface {
	// Indexed gives the session's cursor: the pages speak of the records up
	// to this one. 0: of none. A session that does not exist is an error
	// wrapping ErrNoSession.
	Indexed(ctx context.Context, key furl.SessionKey) (furl.Seq, error)

	// Unindexed gives the tenant's sessions that have records above their
	// cursor.
	Unindexed(ctx context.Context, tenant furl.Tenant) iter.Seq2[SessionInfo, error]

	// Pages gives the pages of a bucket of one session in the order of
	// their segments, or those of all sessions of the tenant if the key has
	// none, those of one session together. A session that does not exist
	// has none. The bytes are valid until the next step.
	Pages(ctx context.Context, key furl.SessionKey, bucket uint32) iter.Seq2[IndexPage, error]

	// WriteIndex puts and drops pages of a session and moves its cursor, all
	// or nothing. If the cursor is not at w.After, the error wraps
	// ErrConflict: another process has indexed the same records. A page put
	// where there is one replaces it; the Session of pages is not looked at.
	// The cursor cannot go beyond the newest record. A session that does not
	// exist is an error wrapping ErrNoSession.
	WriteIndex(ctx context.Context, key furl.SessionKey, w IndexWrite) error
}

// Versioned is the ability of a store to tell at little cost that nothing has
// changed.
type Versioned interface {
	// Version returns a number that changes with each commit to the store, of
	// this process or another one. While it is the same, all reads return what
	// they returned before.
	Version(ctx context.Context) (uint64, error)
}

// IndexPage is one page of the search index.
type IndexPage struct {
	Session furl.SessionID
	Bucket  uint32
	Segment uint64
	Data    []byte
}

// IndexWrite is a change to a session's pages. Drops happen before puts.
type IndexWrite struct {
	After, To furl.Seq // the cursor, before and after
	Drop      []uint64 // segments, with all their pages
	Put       []IndexPage
	// DropAll drops every page of the session first, whatever its cursor:
	// After is not looked at.
	DropAll bool
}

// VectorStore is the ability to keep embeddings of texts, by the content they
// were made of. They are derived too, but cost money to make again.
type VectorStore interface {
	// PutVectors keeps vectors for contents of a session. What is there
	// already stays. A session that does not exist is an error wrapping
	// ErrNoSession.
	PutVectors(ctx context.Context, key furl.SessionKey, model string, v []Vector) error

	// Vectors gives the vectors of a session, or of all sessions of the
	// tenant if the key has none, in the order of their digests. The bytes
	// are valid until the next step.
	Vectors(ctx context.Context, key furl.SessionKey, model string) iter.Seq2[Vector, error]

	// FindVectors gives those of the tenant's vectors that were made of
	// these contents, whichever session they came from.
	FindVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) ([]Vector, error)
}

// Vector is the embedding of a content, in the form its model's reader gave it.
type Vector struct {
	Content furl.Digest
	Data    []byte
}
