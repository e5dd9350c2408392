package furl

import (
	"context"
	"iter"
	"time"
)

// Tenant keeps the users of one store apart: a keyed hash of a credential, or
// "" for the one user of a store of one's own. Nothing passes between tenants.
type Tenant string

// SessionID names a session among those of its tenant. It has 1 to 128
// characters out of letters, digits and _ . -, and is not reserved; see
// storage.ValidID.
type SessionID string

// SessionKey says where a session is: every row of a store carries both.
type SessionKey struct {
	Tenant  Tenant
	Session SessionID
}

// Store keeps sessions. It knows records as bytes with a few columns beside
// them and nothing of what they mean: the fold, the views and the search stand
// above it and are the same on every store.
//
// A Store is safe for concurrent use, also by several processes where it says
// so. What has been acknowledged is committed: a process that is killed at any
// moment leaves a store that opens again with all of it. No operation spans
// sessions in one transaction.
//
// Furl's stores are packages inmem, sqlite and postgres; package furltest has
// the tests that say what a store must do. Abilities that not every store has
// are interfaces of package storage, which callers find by assertion.
type Store interface {
	// Append adds the records of a batch to a session, all or none. The
	// first record's Seq is one more than the number of records the session
	// has, the others follow without gaps; Seq 1 creates the session. It is
	// a compare-and-swap: if the session has a record there already, the
	// error wraps ErrConflict and nothing changes, unless it has all of them
	// with the same bytes, which is a repetition, no error, and changes
	// nothing, the Meta neither. A gap is an error wrapping ErrConflict too.
	// A batch without records sets the Meta alone; the session must exist. A
	// batch that storage.CheckBatch refuses is refused.
	//
	// An error that wraps none of the above, such as the end of ctx, leaves
	// open whether the batch was committed: append it again.
	Append(ctx context.Context, key SessionKey, b Batch) error

	// Read gives the records of a session whose Seq is above after, in
	// order, as they were when Read began. A session that does not exist is
	// an error wrapping ErrNoSession. The records are the caller's; their
	// bytes are not used again.
	Read(ctx context.Context, key SessionKey, after Seq) iter.Seq2[Record, error]

	// Match finds the messages of a tenant that end one of these chains of
	// digests (Record.Chain), the one appended last first, at most limit of
	// them. Messages whose chain is zero are not found.
	Match(ctx context.Context, tenant Tenant, chains []Digest, limit int) ([]Matched, error)

	// Sessions gives what is known about a tenant's sessions, the one with
	// the newest record first. Times are given in UTC, to the microsecond
	// at least; no two records of a store are appended at the same time.
	Sessions(ctx context.Context, tenant Tenant, q SessionQuery) iter.Seq2[SessionInfo, error]

	// Close releases the store. Appends that are under way end first.
	Close() error
}

// Batch is what is appended to a session at once.
type Batch struct {
	Records []Record
	// Meta, if set, replaces what is known about the session.
	Meta *Meta
}

// Meta is what is known about a session beside its records. Its strings are
// text: of what is no UTF-8, each byte is kept as U+FFFD.
type Meta struct {
	// Title is for people: the beginning of the first user message, or what
	// they called it.
	Title string `json:"title,omitempty"`
	// Client names the agent, as far as it can be told, such as "codex".
	Client string `json:"client,omitempty"`
	// Hint is the client's own id of the session, "" if it gives none.
	Hint string `json:"hint,omitempty"`
	// Model is that of the newest exchange.
	Model  string `json:"model,omitempty"`
	Format Format `json:"format,omitempty"`
	// Window is the context window in tokens that the newest exchange was
	// planned for, where that is not what the catalogue says of its model;
	// 0: it is.
	Window int `json:"window,omitempty"`
	// ToolShare is how much of what the newest exchange had beside its
	// messages were definitions of tools, from 0 to 1; the rest were
	// instructions.
	ToolShare float64 `json:"tool_share,omitempty"`
	// Policy is the name of the session's policy, "" for the default.
	Policy string `json:"policy,omitempty"`
	// Source says where an imported session came from.
	Source string `json:"source,omitempty"`
	// Imported is how many of the first records were taken in from there, and
	// Recorded when the newest of them was recorded.
	Imported Seq       `json:"imported,omitempty"`
	Recorded time.Time `json:"recorded,omitzero"`
	// ForkOf and ForkAt say which record of which session this one began
	// as a copy of.
	ForkOf SessionID `json:"fork_of,omitempty"`
	ForkAt Seq       `json:"fork_at,omitempty"`
	// Settings are the user's for this session, such as a preference.
	Settings map[string]string `json:"settings,omitempty"`
}

// SessionInfo is what a store tells about a session without reading it.
type SessionInfo struct {
	SessionKey
	Meta
	// Created and Updated are when its first and newest record were
	// appended to the store.
	Created, Updated time.Time
	Records          Seq   // how many, which is the newest's Seq
	Messages         int   // of the records
	Bytes            int64 // of the messages on the wire
}

// Newest is when something last happened in the session: when its newest
// record was recorded elsewhere, if that was imported, else Updated. It is
// never after Updated.
func (i *SessionInfo) Newest() time.Time {
	if i.Recorded.IsZero() || i.Records > i.Imported || i.Recorded.After(i.Updated) {
		return i.Updated
	}
	return i.Recorded
}

// SessionQuery narrows a list of sessions. The zero value asks for all.
type SessionQuery struct {
	// Prefix is what the session's id begins with.
	Prefix string
	// Hint, if set, is the client's own id.
	Hint string
	// Since and Before limit Updated, the first inclusive and the second
	// exclusive; zero: no limit.
	Since, Before time.Time
	// Limit is the most sessions to give; 0: all.
	Limit int
}

// Matched is a message found by its chain.
type Matched struct {
	Session SessionID
	Seq     Seq
	Chain   Digest
}
