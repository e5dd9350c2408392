package storage

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Store stores sessions. It treats records as bytes with a few columns; views
// and search are computed above it. A Store is safe for concurrent use, and by
// several processes if it says so. An acknowledged append survives a killed
// process. No operation spans sessions in one transaction.
//
// The stores are packages inmem, sqlite and postgres; furltest tests what a
// store must do. Optional abilities are the other interfaces of this package.
type Store interface {
	// Append adds a batch to a session, all or nothing. The first record's Seq
	// is one more than the session's number of records; the others follow
	// without gaps; Seq 1 creates the session. If the session has other records
	// there, or there is a gap, the error wraps ErrConflict. If it has the same
	// records already, Append changes nothing and returns nil. A batch without
	// records sets the Meta of an existing session. Batches that
	// CheckBatch rejects are refused.
	//
	// After any other error the batch may or may not be committed: append it
	// again.
	Append(ctx context.Context, key furl.SessionKey, b Batch) error

	// Read returns the records of a session after a record, in order, as of the
	// call. The caller owns them. An unknown session is an error wrapping
	// ErrNoSession.
	Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error]

	// Match finds at most limit of a tenant's messages whose Record.Chain is
	// one of the chains, newest first. Zero chains are not found.
	Match(ctx context.Context, tenant furl.Tenant, chains []furl.Digest, limit int) ([]Matched, error)

	// Sessions lists a tenant's sessions, newest record first. Times are in
	// UTC, at least to the microsecond; no two records of a store have the same
	// append time.
	Sessions(ctx context.Context, tenant furl.Tenant, q SessionQuery) iter.Seq2[SessionInfo, error]

	// Close finishes appends in progress and releases the store.
	Close() error
}

// ErrNoSession means that the store does not have the session.
var ErrNoSession = errors.New("no such session")

// ErrDestroyed means that the keys of a session's content were destroyed, so that no
// process may show the content any more, not even from memory.
var ErrDestroyed = errors.New("the encryption keys were destroyed")

// Batch is what one Append adds to a session.
type Batch struct {
	Records []furl.Record
	// Meta, if set, replaces what is known about the session.
	Meta *Meta
	// MetaWas, if set, is the metadata that Meta was made from. If the session
	// has other metadata, the append changes nothing and the error wraps
	// furl.ErrConflict. So two processes cannot overwrite each other's settings.
	// Stores compare with MetaMatches.
	MetaWas *Meta
	// Contents are bytes to which records of the session refer by their
	// SHA-256, such as those of furl.RequestParts. A store that implements
	// ContentStore stores each once for the session; other stores ignore them,
	// as they ignore those of a batch without records.
	Contents [][]byte
	// ContentIDs, if set, are the ids of Contents in place of their SHA-256:
	// encrypted contents have keyed ids. Stores do not compress or verify those.
	ContentIDs []furl.Digest
}

// MaxContent is the size of the largest content, in bytes.
const MaxContent = 4 << 20

// MaxSealed is how many bytes larger an encrypted content may be.
const MaxSealed = 256

// ErrNoContent means that a session has no content with a digest.
var ErrNoContent = errors.New("no such content")

// Meta describes a session. Invalid UTF-8 in its strings is stored as U+FFFD,
// one for each byte.
type Meta struct {
	// Title is the beginning of the first user message, or a given name.
	Title string `json:"title,omitempty"`
	// TitleBy says who gave the title: TitleByAgent, TitleByPerson, or "" if it
	// is the beginning of a message.
	TitleBy string `json:"title_by,omitempty"`
	// Client is the agent's name, such as "Claude Code". Stores of earlier
	// versions have the name in its User-Agent, such as "claude-cli".
	Client string `json:"client,omitempty"`
	// Hint is the client's own id of the session, "" if it gives none. That of a
	// sub-agent may be its parent's id, a slash, and its own.
	Hint string `json:"hint,omitempty"`
	// Parent is the client's own id of the session that started this one as a
	// sub-agent.
	Parent string `json:"parent,omitempty"`
	// Project is the folder that the agent works in, an absolute path.
	Project string `json:"project,omitempty"`
	// Model is the model of the newest exchange.
	Model  string      `json:"model,omitempty"`
	Format furl.Format `json:"format,omitempty"`
	// Window is the context window in tokens that the newest exchange was
	// planned for, if neither Windows nor the catalogue says the same; else 0.
	Window int `json:"window,omitempty"`
	// Windows are the context windows in tokens that an imported recording
	// says its models had, by the models' names in requests.
	Windows map[string]int `json:"windows,omitempty"`
	// Answered are the largest prompts in tokens that providers have answered, by the
	// models' names in requests: their windows are at least as large. See RecordAnswered.
	Answered map[string]int `json:"answered,omitempty"`
	// Binding are the models whose provider has refused thinking in this session, by
	// their names in requests: they bind thinking to the prompt before it.
	Binding []string `json:"binding,omitempty"`
	// ToolShare is the share of tool definitions, from 0 to 1, in what the
	// newest exchange sent besides messages.
	ToolShare float64 `json:"tool_share,omitempty"`
	// Policy is the name of the session's policy, "" for the default.
	Policy string `json:"policy,omitempty"`
	// Source is where an imported session came from.
	Source string `json:"source,omitempty"`
	// Imported is the number of imported records, and Recorded the time of the
	// newest of them.
	Imported furl.Seq  `json:"imported,omitempty"`
	Recorded time.Time `json:"recorded,omitzero"`
	// ForkOf is the session that this one was forked from, and ForkAt the last record that it has
	// of it; 0 for an imported fork whose original is not in the store. A fork made by
	// furl has the same record numbers as its original.
	ForkOf furl.SessionID `json:"fork_of,omitempty"`
	ForkAt furl.Seq       `json:"fork_at,omitempty"`
	// Settings are the user's settings for this session.
	Settings map[string]string `json:"settings,omitempty"`
	// Waiting is a summary that waits for a person's approval, in a form of
	// package session; nil for none.
	Waiting json.RawMessage `json:"waiting_summary,omitempty"`
	// Awaited is what is known of a request whose reply the program has not told yet, in
	// a form of package session; nil for none.
	Awaited json.RawMessage `json:"awaited_reply,omitempty"`
	// Ledger has the savings of the session's requests. It is nil for imported
	// sessions, copies, and sessions recorded before it existed.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Plan is what the provider said about the limits of the session's account when they
	// last changed; nil if it said nothing. It is not changed once it is set.
	Plan *Plan `json:"plan,omitempty"`
	// Holds are the legal holds of the store. Only the session that has them sets them.
	Holds []Hold `json:"legal_holds,omitempty"`
	// Redactions are the changes to recorded texts, oldest first.
	Redactions []Redaction `json:"redactions,omitempty"`
	// Sealed is the encrypted form of all other fields but Hint, which then is a
	// keyed digest. Only stores and package encrypted see it.
	Sealed []byte `json:"sealed,omitempty"`
}

// Redaction says that texts of a session were replaced by "[redacted]", not which.
type Redaction struct {
	At time.Time `json:"at"`
	By string    `json:"by"`
	// Records are those that were changed, in order. Their digests and chains are
	// those of the original messages.
	Records []furl.Seq `json:"records,omitempty"`
	Texts   int        `json:"texts"` // how many were replaced
	Bytes   int        `json:"bytes"` // of these
	// Record is the number of a record that was appended after the change, so that
	// processes with the session in memory find that they have to read it again. It
	// is 0 if the redaction was interrupted before that.
	Record furl.Seq `json:"record,omitempty"`
}

// Redacted reports whether texts of a record were replaced. Its digests are those of
// the original.
func (m *Meta) Redacted(seq furl.Seq) bool {
	for i := range m.Redactions {
		if _, ok := slices.BinarySearch(m.Redactions[i].Records, seq); ok {
			return true
		}
	}
	return false
}

// The values of Meta.TitleBy.
const (
	TitleByAgent  = "agent"
	TitleByPerson = "person"
)

// The bounds of Meta.Answered: clients choose the names.
const (
	maxAnswered     = 32
	maxAnsweredName = 100 // bytes
)

// RecordAnswered records the size of a prompt, in tokens, that a model's provider has
// answered.
func (m *Meta) RecordAnswered(model string, prompt int) {
	was, known := m.Answered[model]
	if prompt <= was || len(model) > maxAnsweredName || !known && len(m.Answered) >= maxAnswered {
		return
	}
	if m.Answered == nil {
		m.Answered = make(map[string]int)
	}
	m.Answered[model] = prompt
}

// Clone returns a copy with settings, windows and a ledger of its own.
func (m Meta) Clone() Meta {
	m.Settings = maps.Clone(m.Settings)
	m.Windows = maps.Clone(m.Windows)
	m.Answered = maps.Clone(m.Answered)
	m.Binding = slices.Clone(m.Binding)
	m.Holds = slices.Clone(m.Holds)
	m.Redactions = slices.Clone(m.Redactions)
	if m.Ledger != nil {
		l := *m.Ledger
		l.Days = slices.Clone(l.Days)
		m.Ledger = &l
	}
	return m
}

// SessionInfo is what a store tells about a session without reading it.
type SessionInfo struct {
	furl.SessionKey
	Meta
	// Created and Updated are when its first and newest record were
	// appended to the store.
	Created, Updated time.Time
	Records          furl.Seq // how many, which is the newest's Seq
	Messages         int      // of the records
	Bytes            int64    // of the messages on the wire
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
	Session furl.SessionID
	Seq     furl.Seq
	Chain   furl.Digest
}
