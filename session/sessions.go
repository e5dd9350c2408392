package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// Options are the options of Sessions. The zero value is useful.
type Options struct {
	// Tenant is the tenant of the sessions. See Sessions.For.
	Tenant furl.Tenant
	// Catalog describes the models. If nil, defaults to the built-in catalog.
	Catalog *catalog.Catalog
	// Window, if not zero, is the context window in tokens for all models. See
	// Session.Model for what it overrides.
	Window int
	// LastWindow makes each session use the window that its latest request was
	// planned for (storage.Meta.Window) if Window is zero. With it, a program that
	// reads a gateway's sessions uses the gateway's limits.
	LastWindow bool
	// Reported returns what the provider's models API reports of a model, by its name in
	// requests and their format, and false if nothing is known yet. It is called for each
	// request, so it must not block. It must be safe for concurrent use, and may be nil.
	// See Session.Model for what it overrides. Configure does not change it.
	Reported func(model string, format furl.Format) (Reported, bool)
	// Policy is the name of the policy of sessions without their own. If empty,
	// defaults to defaultPolicy.
	Policy string
	// Policies are the policies that can be selected by name, with their options.
	// If nil, defaults to the presets (policy.NewSet).
	Policies *policy.Set
	// Settings apply to all policies. A session's own settings override them. If
	// Summarizer is set, a plan may call it, and Fit waits for it; the session can
	// be used meanwhile.
	Settings policy.Settings
	// AskFirst makes a prepared summary wait until a person approves it, in sessions
	// without their own setting ask_first. If nil, it is off.
	AskFirst *bool
	// Commands answers commands to furl that a person types in an agent, in sessions
	// without their own setting commands. If nil, it is off. Package furlhttp answers
	// them.
	Commands *bool
	// Counter counts tokens. If nil, defaults to the model's counter (token.For).
	Counter furl.Counter
	// Indexer, if not nil, is notified of appends, so that an indexer running in
	// the program indexes them at once. Searches do not require it.
	Indexer *recall.Indexer
	// Vectors, if not nil, adds semantic search. The caller runs it.
	Vectors *recall.Vectors
	// Recall reports whether models can call furl's recall tools.
	Recall bool
	// Deleted, if not nil, is called for each session that Delete or Retain has deleted, so
	// that the program deletes what it keeps of the session outside of the store. Its error
	// is one of Delete or Retain. Configure does not change it.
	Deleted func(furl.SessionKey) error
	// Redacted, if not nil, is called for each session that Redact has redacted, or would
	// with DryRun, so that the program removes the secrets from what it keeps of the session
	// outside of the store. It returns how many files it has removed, or would. Configure
	// does not change it.
	Redacted func(furl.SessionKey, *Redaction) (removed int, err error)
	// Refuse makes it an error if a request cannot be recorded or planned. If
	// false, the request is sent unchanged; see package furlhttp.
	Refuse bool
	// Keep is how many unused sessions stay in memory, and KeepBytes their
	// approximate memory in bytes. If zero, they default to 256 and 128 MiB.
	// Sessions idle for two minutes get a quarter of the bytes.
	Keep      int
	KeepBytes int64
	// MaxMemory is the approximate limit, in bytes, for the memory of all open
	// sessions, including those in use. A session that does not fit is not read and
	// cannot grow; the error wraps ErrMemory. If zero, defaults to 384 MiB, enough
	// for 200,000 records with 100 MB of messages.
	MaxMemory int64
	// Poll is how often Watch polls for records of other processes if the store
	// cannot notify. If zero, defaults to one second.
	Poll time.Duration
	// Now is the clock, called by several goroutines at once. If nil, defaults to time.Now.
	Now func() time.Time
	// NewID returns ids for new sessions. If nil, ids are random.
	NewID func() furl.SessionID
	// Logger logs failures that are not returned as errors, never message content.
	// If nil, nothing is logged.
	Logger *slog.Logger
}

// defaultPolicy is the policy of sessions without a chosen one.
const defaultPolicy = "auto"

// Sessions gives access to the sessions of one tenant in a store. It is safe for
// concurrent use.
type Sessions struct {
	open    *open.Sessions
	current *atomic.Pointer[Options] // as changed by Configure
}

// Internal returns the open sessions for other packages of furl; see Session.Internal.
func (a *Sessions) Internal() *open.Sessions { return a.open }

// defaults sets the defaults of unset options.
func (o *Options) defaults() {
	if o.Catalog == nil {
		o.Catalog = catalog.Default()
	}
	o.Policy = cmp.Or(o.Policy, defaultPolicy)
	if o.Policies == nil {
		o.Policies = policy.NewSet()
	}
	if o.Keep <= 0 {
		o.Keep = 256
	}
	if o.KeepBytes <= 0 {
		o.KeepBytes = 128 << 20
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = 384 << 20
	}
	o.KeepBytes = min(o.KeepBytes, o.MaxMemory)
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// checkPolicies returns an error if the default policy is unknown, or the options
// of any policy are invalid.
func (o *Options) checkPolicies() error {
	for _, name := range append(o.Policies.Names(), o.Policy) {
		if _, err := o.Policies.Policy(name, o.Settings); err != nil {
			return err
		}
	}
	return nil
}

// New returns the sessions in a store. The caller closes the store. Unknown policies
// and invalid options are an error.
func New(store storage.Store, opts *Options) (*Sessions, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.defaults()
	if err := o.checkPolicies(); err != nil {
		return nil, err
	}
	all := &Sessions{open.New(store, o.Tenant, o.core(store)), new(atomic.Pointer[Options])}
	all.current.Store(&o)
	return all, nil
}

// core returns what the core of sessions needs of the options.
func (o *Options) core(store storage.Store) *open.Options {
	out := &open.Options{
		Catalog: o.Catalog, Window: o.Window, LastWindow: o.LastWindow, Policy: o.Policy, Policies: o.Policies, Settings: o.Settings,
		AskFirst: o.AskFirst, Commands: o.Commands, Recall: o.Recall, Counter: o.Counter, Keep: o.Keep, KeepBytes: o.KeepBytes,
		MaxMemory: o.MaxMemory, Poll: o.Poll, Now: o.Now, NewID: o.NewID, Logger: o.Logger,
	}
	if o.Reported != nil {
		out.Reported = func(model string, format furl.Format) (window, maxOutput int) {
			r, _ := o.Reported(model, format)
			return r.Window, r.MaxOutput
		}
	}
	out.Searcher = recall.NewSearcher(store, &recall.SearcherOptions{Vectors: o.Vectors, Log: o.Logger})
	if out.Indexer = o.Indexer; o.Indexer != nil {
		out.Appended = o.Indexer.Touch
	} else {
		out.Indexer = recall.NewIndexer(store, &recall.IndexerOptions{Log: o.Logger})
	}
	return out
}

// Configure changes Catalog, Window, Policy, Policies, Settings, AskFirst, Commands,
// Recall and Refuse of the options, from the next request on. The other options stay as given to
// New. Requests in flight are not affected. Invalid options are an error and change
// nothing.
func (a *Sessions) Configure(opts *Options) error {
	o := *a.Options()
	if opts == nil {
		opts = &Options{}
	}
	o.Catalog, o.Window = opts.Catalog, opts.Window
	o.Policy, o.Policies, o.Settings = opts.Policy, opts.Policies, opts.Settings
	o.AskFirst, o.Commands = opts.AskFirst, opts.Commands
	o.Recall, o.Refuse = opts.Recall, opts.Refuse
	o.defaults()
	if err := o.checkPolicies(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	core := *a.open.Options()
	core.Catalog, core.Window = o.Catalog, o.Window
	core.Policy, core.Policies, core.Settings = o.Policy, o.Policies, o.Settings
	core.AskFirst, core.Commands, core.Recall = o.AskFirst, o.Commands, o.Recall
	a.current.Store(&o)
	a.open.Configure(&core)
	return nil
}

// Options returns the current options; see Configure. The caller must not change
// them.
func (a *Sessions) Options() *Options { return a.current.Load() }

// For returns the sessions of another tenant in the same store. Tenants share
// nothing except the memory limits.
func (a *Sessions) For(tenant furl.Tenant) *Sessions {
	return &Sessions{a.open.For(tenant), a.current}
}

// Tenant returns the tenant of the sessions.
func (a *Sessions) Tenant() furl.Tenant { return a.open.Tenant() }

// Store returns the store of the sessions.
func (a *Sessions) Store() storage.Store { return a.open.Store() }

// newID returns twelve random letters and digits, 60 bits. The first few usually
// identify a session of one user.
func newID() furl.SessionID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	id := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
	return furl.SessionID(strings.ToLower(id[:12]))
}

// Create creates a session. It is stored with its first record.
func (a *Sessions) Create(meta storage.Meta) *Session {
	return FromInternal(a.open.Create(meta))
}

// CreateAs is Create with a given id. If a session of that id is in memory, it is
// returned unchanged.
func (a *Sessions) CreateAs(id furl.SessionID, meta storage.Meta) *Session {
	return FromInternal(a.open.CreateAs(id, meta))
}

// Open returns the session with that id, up to date with the store. Only new records
// are read. If the session does not exist, the error wraps storage.ErrNoSession.
func (a *Sessions) Open(ctx context.Context, id furl.SessionID) (*Session, error) {
	s, err := a.open.Open(ctx, id)
	return FromInternal(s), err
}

// AmbiguousError is the error for a name that matches several sessions.
type AmbiguousError struct {
	Name string
	// Sessions are some of the matching sessions, newest first.
	Sessions []storage.SessionInfo
}

func (e *AmbiguousError) Error() string {
	ids := make([]string, len(e.Sessions))
	for i := range e.Sessions {
		ids[i] = string(e.Sessions[i].Session)
	}
	return fmt.Sprintf("ambiguous session name %q: it matches %s", e.Name, strings.Join(ids, ", "))
}

// Latest is the name of the session with the newest record, for Find.
const Latest = "latest"

// Find opens a session by a name that a person types: its id or the agent's own id
// of it, a unique prefix of one of these, its title or a unique prefix or part of
// it, ignoring case, or Latest. A "…" at the end of a shortened id or title is
// ignored. If several sessions match, the error is an *AmbiguousError; if none does,
// it wraps storage.ErrNoSession.
func (a *Sessions) Find(ctx context.Context, name string) (*Session, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil, fmt.Errorf("empty session name: %w", storage.ErrNoSession)
	}
	if s, err := a.Open(ctx, furl.SessionID(name)); err == nil || !errors.Is(err, storage.ErrNoSession) {
		return s, err
	}
	found, err := a.find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%q: %w", name, storage.ErrNoSession)
	case len(found) > 1:
		return nil, &AmbiguousError{name, found[:min(len(found), 10)]}
	}
	return a.Open(ctx, found[0].Session)
}

// find returns the sessions that match a name best.
func (a *Sessions) find(ctx context.Context, name string) ([]storage.SessionInfo, error) {
	if name == Latest {
		for info, err := range a.List(ctx, storage.SessionQuery{Limit: 1}) {
			return []storage.SessionInfo{info}, err
		}
		return nil, nil
	}
	fits := make([][]storage.SessionInfo, 5) // best first
	lower := strings.ToLower(name)
	for info, err := range a.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		title := strings.ToLower(info.Title)
		switch {
		case agents.OwnID(info.Hint, name) == name:
			fits[0] = append(fits[0], info)
		case strings.HasPrefix(string(info.Session), name) || strings.HasPrefix(agents.OwnID(info.Hint, name), name):
			fits[1] = append(fits[1], info)
		case title == lower:
			fits[2] = append(fits[2], info)
		case strings.HasPrefix(title, lower):
			fits[3] = append(fits[3], info)
		case strings.Contains(title, lower):
			fits[4] = append(fits[4], info)
		}
	}
	at := slices.IndexFunc(fits, func(f []storage.SessionInfo) bool { return len(f) > 0 })
	if at < 0 {
		if begin, ok := strings.CutSuffix(name, "…"); ok && begin != "" {
			return a.find(ctx, begin)
		}
		return nil, nil
	}
	return fits[at], nil
}

// Delete deletes a session. If it is under legal hold, the error is a
// *storage.HeldError. If the store cannot delete, the error wraps
// errors.ErrUnsupported.
func (a *Sessions) Delete(ctx context.Context, id furl.SessionID) error {
	d, ok := a.Store().(storage.Deleter)
	if !ok {
		return fmt.Errorf("delete session %s: the store does not support deleting: %w", id, errors.ErrUnsupported)
	}
	key := furl.SessionKey{Tenant: a.Tenant(), Session: id}
	if err := storage.CheckHeld(ctx, a.Store(), key); err != nil {
		return err
	}
	if err := d.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return a.deleted(key)
}

// deleted drops what is kept of a session that was deleted from the store.
func (a *Sessions) deleted(key furl.SessionKey) error {
	a.open.For(key.Tenant).Deleted(key.Session)
	if deleted := a.Options().Deleted; deleted != nil {
		if err := deleted(key); err != nil {
			return fmt.Errorf("session %s was deleted, but not what is kept outside of the store: %w", key.Session, err)
		}
	}
	return nil
}

// Model returns the description of a model by its name in requests, with the window
// of sessions that say nothing else; see Session.Model.
func (a *Sessions) Model(name string, format furl.Format) furl.Model {
	return a.open.Model(name, format)
}

// WindowOf returns the context window of a session with this metadata, in tokens, 0 if
// it is unknown, and whether it is assumed. It equals Usage.Limit without reading the
// session.
func (a *Sessions) WindowOf(meta storage.Meta) (tokens int, assumed bool) {
	return a.open.WindowOf(meta)
}

// Trim evicts idle sessions and caches above the limits of Options.KeepBytes. New
// sessions do the same; Trim is for times without new sessions. It reports whether
// it evicted anything.
func (a *Sessions) Trim() bool { return a.open.Trim() }

// Drop evicts all sessions from memory. They are read again when they are opened;
// nothing is lost.
func (a *Sessions) Drop() { a.open.Drop() }

// ErrMemory is wrapped by the error for a session that does not fit into the memory
// for sessions (Options.MaxMemory): it is too large, or other sessions in use need
// the memory.
var ErrMemory = open.ErrMemory
