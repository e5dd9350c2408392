package furl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Tenant keeps the users of one store apart: a keyed hash of a credential, or
// "" for the one user of a store of one's own. Nothing passes between tenants.
type Tenant string

// SessionID names a session among those of its tenant. It has 1 to 128
// characters out of letters, digits and _ . -, and is not reserved; see
// ValidSessionID.
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
// are the interfaces Searchable, VectorStore, Watcher, Deleter, TenantLister and
// Checker,
// which callers find by assertion.
type Store interface {
	// Append adds the records of a batch to a session, all or none. The
	// first record's Seq is one more than the number of records the session
	// has, the others follow without gaps; Seq 1 creates the session. It is
	// a compare-and-swap: if the session has a record there already, the
	// error wraps ErrConflict and nothing changes, unless it has all of them
	// with the same bytes, which is a repetition, no error, and changes
	// nothing, the Meta neither. A gap is an error wrapping ErrConflict too.
	// A batch without records sets the Meta alone; the session must exist. A
	// batch that Batch.Check refuses is refused.
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

// Check says why a batch can be appended to no store: the session's id or the
// tenant is no name, a record has no body, Seqs are not in a row from 1 on, or
// a parent is not below its record. Stores call it first.
func (b *Batch) Check(key SessionKey) error {
	if ReservedSessionID(key.Session) {
		return fmt.Errorf("session id %.140q is reserved: commands would read it as a flag, a path or the newest session", key.Session)
	}
	if !ValidSessionID(key.Session) {
		return fmt.Errorf("session id %.140q: it must have 1 to 128 letters, digits, and _ . -", key.Session)
	}
	if len(key.Tenant) > maxTenant {
		return fmt.Errorf("a tenant's name of %d bytes: at most %d", len(key.Tenant), maxTenant)
	}
	for i := range b.Records {
		r := &b.Records[i]
		switch {
		case r.Body == nil:
			return fmt.Errorf("record %d has no body", r.Seq)
		case r.Seq == 0:
			return errors.New("a record without a number")
		case r.Seq != b.Records[0].Seq+Seq(i):
			return fmt.Errorf("record %d follows %d: %w", r.Seq, b.Records[i-1].Seq, ErrConflict)
		case r.Parent >= r.Seq:
			return fmt.Errorf("record %d has the parent %d", r.Seq, r.Parent)
		}
	}
	return nil
}

// maxTenant is the length of the longest tenant's name, in bytes.
const maxTenant = 256

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

// ErrNoSession is returned for a session that the store does not have.
var ErrNoSession = errors.New("no such session")

// ErrNewerFormat is returned on opening a store that a newer furl has written.
// Nothing is changed in it.
var ErrNewerFormat = errors.New("the store was written by a newer version of furl")

// ErrDamaged is returned when stored bytes are not what was written.
var ErrDamaged = errors.New("the store is damaged")

// ValidSessionID reports whether id can name a session.
func ValidSessionID(id SessionID) bool {
	return sessionIDCharacters(id) && !reservedSessionID(id)
}

// ReservedSessionID reports whether id has the characters of a session's id and
// cannot be one all the same, because it means something else wherever an id is
// given: "latest" in any case, the newest session; what begins with a dash, a
// flag; dots alone, a folder.
func ReservedSessionID(id SessionID) bool {
	return sessionIDCharacters(id) && reservedSessionID(id)
}

func reservedSessionID(id SessionID) bool {
	return id[0] == '-' || strings.Trim(string(id), ".") == "" || strings.EqualFold(string(id), "latest")
}

// UnreservedSessionID returns the id that a session with a reserved one gets
// instead: session-, what can be kept of id, and eight digits that depend on
// id. Try is 0, or the number of ids that were taken already.
func UnreservedSessionID(id SessionID, try int) SessionID {
	const begin, digits = "session-", 8
	kept := strings.Trim(string(id), "-.")
	kept = kept[:min(len(kept), maxSessionID-len(begin)-digits-1)]
	if kept != "" {
		kept += "-"
	}
	sum := DigestOf(fmt.Appendf(nil, "%s %d", id, try))
	return SessionID(fmt.Sprintf("%s%s%x", begin, kept, sum[:digits/2]))
}

// RenamedSession is a session that got another id because its own is reserved.
type RenamedSession struct {
	Tenant  Tenant
	Was, Is SessionID
}

// Renamer is the ability of a store to tell which sessions it has renamed when
// it was opened: earlier versions of furl took ids that are reserved now.
type Renamer interface{ Renamed() []RenamedSession }

// maxSessionID is the length of the longest id, in bytes.
const maxSessionID = 128

func sessionIDCharacters(id SessionID) bool {
	if len(id) == 0 || len(id) > maxSessionID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// EarlyAppender is the ability to tell of an append as soon as it is committed,
// where the store goes on to wait for the disk before it acknowledges one.
type EarlyAppender interface {
	// AppendEarly is Store.Append that calls committed, once, when the batch
	// is committed: whoever reads the session sees it, and it outlives the
	// process, but perhaps not yet the loss of power. An error before that
	// is Append's; one after it says that this is still so. The end of ctx
	// does nothing after it.
	AppendEarly(ctx context.Context, key SessionKey, b Batch, committed func()) error
}

// Deleter is the ability to remove a session whole: its records, the bodies no
// other session of the tenant has, its index pages and vectors; the bytes do
// not stay in free pages. A session that does not exist is an error wrapping
// ErrNoSession.
type Deleter interface {
	Delete(ctx context.Context, key SessionKey) error
}

// ManyDeleter is a Deleter for which it costs less to remove many sessions
// together. Those that do not exist are none of its errors. Where it gives an
// error, some may be gone.
type ManyDeleter interface {
	Deleter
	DeleteMany(ctx context.Context, keys []SessionKey) error
}

// TenantLister is the ability to name the tenants of a store.
type TenantLister interface {
	// Tenants gives the tenants that have sessions, ordered by their names.
	Tenants(ctx context.Context) ([]Tenant, error)
}

// Watcher is the ability to tell of appends as they happen.
type Watcher interface {
	// Watch gives a channel that receives a value some time after each
	// append to the session (any of the tenant's, if Session is ""), also
	// by another process where the store can tell; several appends may give
	// one value. A reader keeps a cursor, reads what is above it, waits for
	// a value, and reads again. Watching ends with ctx, which closes the
	// channel.
	Watch(ctx context.Context, key SessionKey) (<-chan struct{}, error)
}

// Problem is something a check of a store found.
type Problem struct {
	Session SessionKey // zero: of the store as a whole
	Seq     Seq        // 0: of the session as a whole
	Text    string     // what is wrong, for people
	// Derived says that what is wrong can be rebuilt from the records, and
	// Mended that it was.
	Derived, Mended bool
}

// Checker is the ability to hold a store against its own invariants.
type Checker interface {
	// Check reads everything and gives what is wrong. With mend it rebuilds
	// what can be rebuilt; records are never touched. It does not fold
	// sessions, see package session for that.
	Check(ctx context.Context, mend bool) iter.Seq2[Problem, error]
	// Stats tells the sizes of the store's parts.
	Stats(ctx context.Context) (StoreStats, error)
}

// StoreStats are sizes of a store, of all tenants.
type StoreStats struct {
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
