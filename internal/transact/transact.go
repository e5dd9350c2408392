// Package transact is the part of package session for other packages of furl:
// changes of a session under its lock, and requests that are planned before they
// are recorded. Package session implements it, package internal/exchange uses it.
// Programs do not need it, so it is not in session's public API.
//
// The type parameters are types of package session, which imports this one:
// Session is *session.Session, Fit is *session.Fit.
package transact

import (
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Package session sets these when it is initialized.
var (
	// OfSessions takes a *session.Sessions and returns its
	// Sessions[*session.Session].
	OfSessions func(all any) any
	// OfSession takes a *session.Session and returns its Session[*session.Fit].
	OfSession func(s any) any
)

// SettingRecall is the setting with the names of a session's recall tools. It is set
// with the first request and never changed: tools are at the start of a prompt, so
// adding or removing one invalidates the prompt cache. Session.Set does not accept it.
const SettingRecall = "recall_tools"

// Sessions are the sessions of a tenant, in memory and in the store.
type Sessions[Session any] interface {
	// FindByHead returns the session in memory whose head has this chain of
	// digests, nil if there is none.
	FindByHead(chain furl.Digest) Session
	// OpenCached is session.Sessions.Open without reading the store if that was done
	// within Options.Poll. Newer records of another process are noticed when this
	// process appends.
	OpenCached(ctx context.Context, id furl.SessionID) (Session, error)
	// InMemory returns the tenant's sessions in memory, sorted by id.
	InMemory() []Session
	// Forget evicts a session that has no records and is not in use.
	Forget(s Session)
	// Match returns the sessions that have messages with one of the given chains of
	// digests; see storage.Store.
	Match(ctx context.Context, chains []furl.Digest, limit int) ([]storage.Matched, error)
	// MetaOf returns the metadata of a session without reading its records, zero if
	// the session does not exist.
	MetaOf(ctx context.Context, id furl.SessionID) (storage.Meta, error)
	// OthersHaveEnded reports whether all other processes that used the store at a time have
	// ended, so that none of them is recording a reply to a request of that time.
	OthersHaveEnded(at time.Time) bool
	// RecordOverflow records that a model's provider has refused a prompt of about so
	// many tokens as too long. It returns the context window to plan with before the
	// prompt is sent again: the limit that the provider reported, else a little less
	// than the prompt, even if a larger one was accepted before; 0 if unknown.
	RecordOverflow(model string, o *protocol.Overflow, tokens int) int
	// RecordHourCacheRefused records that a model's provider refuses requests for cache
	// entries of one hour. No later request of this process asks for them.
	RecordHourCacheRefused(model string)
	// Memo returns the value stored with the sessions of all tenants under a key. It
	// calls create for the first one.
	Memo(key any, create func() Memo) Memo
}

// Memo is state of another package that is stored with all sessions.
type Memo interface {
	// Trim evicts idle entries, and reports whether there were any.
	Trim() bool
	// Deleted evicts the entries of a deleted session.
	Deleted(key furl.SessionKey)
	// Drop evicts all entries.
	Drop()
}

// Session is one session.
type Session[Fit any] interface {
	// Acquire keeps the session in memory until release is called. InUse reports
	// whether it is acquired.
	Acquire() (release func())
	InUse() bool
	// ReadSince reports whether this process has compared the session with the store since
	// a time.
	ReadSince(t time.Time) bool
	// Read calls f with the session locked. f must not change it.
	Read(f func(tx Tx[Fit]) error) error
	// Try calls f and discards what f has appended and set.
	Try(f func(tx Tx[Fit]) error) error
	// Update calls f, and commits what f has appended and set, or nothing if f
	// returns an error. It does not wait for the disk if the store supports that
	// (storage.EarlyAppender): the changes survive the end of the process, but not
	// always a power loss. So it is for changes that a client would repeat. f is
	// called again if another process has appended meanwhile.
	Update(ctx context.Context, f func(tx Tx[Fit]) error) error
	// Prepare plans a request. It does not change the session before Draft.Commit.
	// If the policy asks a model for a summary, the session can be used while that
	// is written.
	Prepare(ctx context.Context, p Preparation[Fit]) (Draft, error)
	// RecordOverflow is Sessions.RecordOverflow.
	RecordOverflow(model string, o *protocol.Overflow, tokens int) int
	// RecordHourCacheRefused is Sessions.RecordHourCacheRefused.
	RecordHourCacheRefused(model string)
}

// Tx is a locked session. Its results are read-only and valid until the function
// that received the Tx returns; records stay valid.
type Tx[Fit any] interface {
	// Log returns the session's log with the appended records. It is read-only.
	Log() *furl.Log
	// Meta returns the session's metadata. Clone it before changing Settings.
	Meta() storage.Meta
	// SetMeta changes the session's metadata.
	SetMeta(m storage.Meta)
	// Append appends a record after the head.
	Append(by furl.Actor, body furl.Body) (furl.Record, error)
	// AppendMessage appends a message and counts its tokens. The log keeps m.
	AppendMessage(m *furl.Message, c furl.Counter) (furl.Record, error)
	// AppendRedacted appends the redacted form of a message in its place. Its digests
	// are those of m.
	AppendRedacted(m, form *furl.Message) (furl.Record, error)
	// Rewind continues the conversation from an earlier record; see furl.Log.
	Rewind(to furl.Seq, by furl.Actor) (furl.Record, error)
	// Observe records the result of a request, as session.Session.Observe does. fresh
	// is false if it was recorded before.
	Observe(ctx context.Context, sent Fit, reply *protocol.Reply) (fresh bool, err error)
	// Await keeps what Observe records of a request until its reply is known. Awaited
	// returns it, nil if there is none or the session has continued since; ObserveAwaited
	// records it with the reply.
	Await(sent Fit) error
	Awaited() Fit
	ObserveAwaited(ctx context.Context, sent Fit, reply *protocol.Reply) error
	// Measure sets the sizes of the context before and after a reduction that no
	// policy has planned.
	Measure(red *furl.Reduction)
	// Model returns the description of a model, with the session's own limit.
	Model(name string) furl.Model
	// Counter returns the token counter of a model.
	Counter(model string) furl.Counter
	// Memo returns the value stored in memory with the session under a key. It calls
	// create for the first one. The value is lost when the session is evicted.
	Memo(key any, create func() any) any
}

// Preparation holds the functions by which a session prepares a request. They may be
// called more than once if the session changes meanwhile, and must then start over.
type Preparation[Fit any] struct {
	// Append, if not nil, appends the new messages of the request.
	Append func(tx Tx[Fit]) error
	// Prompt returns the other parts of the request.
	Prompt func(tx Tx[Fit]) Prompt
	// Encode, if not nil, is called with the planned prompt.
	Encode func(tx Tx[Fit], fit Fit) error
	// Now is the time of the request and of its records. If zero, defaults to the clock's
	// time.
	Now time.Time
	// NoModel disables summaries written by a model during the plan. AskModel is
	// set if Prompt.Adjust sets a summarizer.
	NoModel, AskModel bool
}

// Prompt holds the parts of a request besides the session's messages, and options
// of its plan.
type Prompt struct {
	// Model is the model's name in requests.
	Model string
	// Preamble is what is sent in addition to the messages: instructions as text
	// blocks, and each tool as an opaque block with its JSON as the text. It counts
	// and is never reduced. Digest identifies it.
	Preamble []furl.Block
	Digest   furl.Digest
	// Tail are messages that are sent after those of the path.
	Tail []furl.Message
	// MaxTokens is the requested maximum size of the reply in tokens, 0 if unset.
	MaxTokens int
	// Cache says which cache entries the request asks for. If its Lifetime is 0,
	// they live as long as those of earlier requests.
	Cache protocol.CacheRequest
	// HourCache says when the request asks for cache entries of one hour for
	// instructions and tools.
	HourCache protocol.HourCache
	// Refused is the provider's error if it refused the prompt as too long, else
	// nil. Window is the context window by that error, 0 if unknown.
	Refused *protocol.Overflow
	Window  int
	// Policy is the name of the policy. If empty, defaults to that of the session.
	Policy string
	// Budget is the largest prompt in tokens, if that is less than the window leaves; 0:
	// no such limit.
	Budget int
	// ThinkingRefused is set if the provider has refused thinking in the prompt. All
	// of it is then left out, unless the session hides nothing and its policy never
	// does.
	ThinkingRefused *protocol.ThinkingRefused
	// Force plans even below the policy's trigger.
	Force bool
	// DryRun plans without recording the plan. The fit's view shows everything
	// that the client has not changed itself.
	DryRun bool
	// Unbound reports that a dry run's prompt is not the view, so no thinking is
	// bound to the view.
	Unbound bool
	// Adjust, if not nil, returns the settings for this plan, made from those of
	// the session.
	Adjust func(policy.Settings) policy.Settings
	// Now is the time of the plan. If zero, defaults to the clock's time.
	Now time.Time
}

// Draft holds the uncommitted records of a prepared request. It is discarded if it
// is not committed.
type Draft interface {
	// Commit records the draft with the durability of Session.Update. If the session
	// has changed since, the request is prepared again, without asking a model.
	Commit(ctx context.Context) error
}
