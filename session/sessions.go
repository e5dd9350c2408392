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
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
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
	*shared
	tenant furl.Tenant
}

// shared is the state of the Sessions of all tenants.
type shared struct {
	store    storage.Store
	o        Options                 // as given to New
	current  atomic.Pointer[Options] // as changed by Configure; see live
	log      *slog.Logger
	searcher *recall.Searcher
	indexer  *recall.Indexer // of sessions that are searched

	mu    sync.Mutex
	open  map[furl.SessionKey]*cached
	clock uint64              // logical clock of uses
	memo  sync.Map            // see transact.Sessions.Memo
	heads map[headKey]*cached // open sessions by the chain at their head
	// limits are the limits that providers have reported, by the model's name in
	// requests.
	limits map[string]modelLimits
	// Caches: models by their name in requests, and sizes of preambles.
	models    map[string]furl.Model
	preambles map[preambleKey]preambleSize

	unknown map[string]bool // models whose window is unknown
	// unknownTypes counts the requests with types that furl does not know, by type.
	unknownTypes map[string]int
	assumed      map[string]bool // models whose rules are assumed
	// recorded are the savings of the requests that this process has recorded.
	recorded map[furl.SessionKey]storage.Savings
	// late counts summaries that were never used, and their cost in US dollars.
	late struct {
		n       int
		dollars float64
	}

	storeErrors atomic.Int64
	health      storeHealth
}

type cached struct {
	s    *Session
	used uint64      // clock at the last use
	at   time.Time   // of the last use
	head furl.Digest // its key in heads; zero: none
}

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
	sh := &shared{
		store: store, o: o, log: o.Logger,
		open:     make(map[furl.SessionKey]*cached),
		heads:    make(map[headKey]*cached),
		searcher: recall.NewSearcher(store, &recall.SearcherOptions{Vectors: o.Vectors, Log: o.Logger}),
		indexer:  o.Indexer,
	}
	if sh.indexer == nil {
		sh.indexer = recall.NewIndexer(store, &recall.IndexerOptions{Log: o.Logger})
	}
	sh.current.Store(&o)
	return &Sessions{sh, o.Tenant}, nil
}

// For returns the sessions of another tenant in the same store. Tenants share
// nothing except the memory limits.
func (a *Sessions) For(tenant furl.Tenant) *Sessions { return &Sessions{a.shared, tenant} }

// Tenant returns the tenant of the sessions.
func (a *Sessions) Tenant() furl.Tenant { return a.tenant }

// Store returns the store of the sessions.
func (a *Sessions) Store() storage.Store { return a.store }

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
	return a.CreateAs(a.o.NewID(), meta)
}

// CreateAs is Create with a given id. If a session of that id is in memory, it is
// returned unchanged.
func (a *Sessions) CreateAs(id furl.SessionID, meta storage.Meta) *Session {
	s := a.get(furl.SessionKey{Tenant: a.tenant, Session: id})
	s.mu.Lock()
	defer s.mu.Unlock()
	if sameMeta(s.meta, storage.Meta{}) {
		s.meta = meta
	}
	return s
}

// Open returns the session with that id, up to date with the store. Only new records
// are read. If the session does not exist, the error wraps storage.ErrNoSession.
func (a *Sessions) Open(ctx context.Context, id furl.SessionID) (*Session, error) {
	if !storage.ValidID(id) {
		return nil, fmt.Errorf("open session %q: %w", id, storage.ErrNoSession)
	}
	s := a.get(furl.SessionKey{Tenant: a.tenant, Session: id})
	if err := s.refresh(ctx); err != nil {
		if errors.Is(err, storage.ErrNoSession) || errors.Is(err, ErrMemory) && s.holders.Load() == 0 {
			a.forget(s)
		}
		return nil, err
	}
	return s, nil
}

// Options returns the current options; see Configure. The caller must not change
// them.
func (a *shared) Options() *Options { return a.live() }

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
	d, ok := a.store.(storage.Deleter)
	if !ok {
		return fmt.Errorf("delete session %s: the store does not support deleting: %w", id, errors.ErrUnsupported)
	}
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	if err := storage.CheckHeld(ctx, a.store, key); err != nil {
		return err
	}
	if err := d.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	a.deleted(id)
	return nil
}

// deleted evicts a deleted session.
func (a *Sessions) deleted(id furl.SessionID) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	if c := a.open[key]; c != nil {
		a.drop(c)
	}
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		memo.(transact.Memo).Deleted(key)
	}
}

// Model returns the description of a model by its name in requests, with the window
// of sessions that say nothing else; see Session.Model.
func (a *shared) Model(name string, format furl.Format) furl.Model {
	m := a.describe(name, format)
	a.setWindow(&m, name, format, a.configuredWindow(&m), 0, 0)
	return m
}

// describe returns what the catalog says about a model, or what it assumes.
func (a *shared) describe(name string, format furl.Format) furl.Model {
	if m, ok := a.catalogModel(name); ok {
		return m
	}
	return catalog.Unknown(name, format)
}

// maxModels is the largest number of cached models.
const maxModels = 1000

// catalogModel returns a model of the catalog or of one of its families. It is cached,
// because the catalog tries many spellings of a name.
func (a *shared) catalogModel(name string) (furl.Model, bool) {
	a.mu.Lock()
	m, ok := a.models[name]
	a.mu.Unlock()
	if ok {
		return m, true
	}
	live := a.live()
	m, known := live.Catalog.Lookup(name)
	if !known {
		if m, known = live.Catalog.Assume(name); !known {
			return m, false
		}
		m.ID = strings.Clone(m.ID) // do not keep a request in memory
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if live != a.live() {
		return m, true // from a catalog that was replaced meanwhile
	}
	if a.models == nil || len(a.models) >= maxModels {
		a.models = make(map[string]furl.Model)
	}
	a.models[name] = m
	return m, true
}

func (a *shared) counter(m *furl.Model) furl.Counter {
	if a.o.Counter != nil {
		return a.o.Counter
	}
	return token.For(m)
}

// get returns the open session of a key, a new empty one if there is none.
func (a *shared) get(key furl.SessionKey) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	if c := a.open[key]; c != nil {
		c.used, c.at = a.clock, time.Now()
		return c.s
	}
	s := &Session{all: a, key: key, log: furl.NewLog(), changed: make(chan struct{})}
	a.open[key] = &cached{s: s, used: a.clock, at: time.Now()}
	a.trim(s)
	return s
}

// Trim evicts idle sessions and caches above the limits of Options.KeepBytes. New
// sessions do the same; Trim is for times without new sessions. It reports whether
// it evicted anything.
func (a *shared) Trim() bool {
	a.mu.Lock()
	was := len(a.open)
	a.trim(nil)
	gone := was > len(a.open)
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		gone = memo.(transact.Memo).Trim() || gone
	}
	return gone
}

// forget evicts a session.
func (a *shared) forget(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.open[s.key]; c != nil && c.s == s {
		a.drop(c)
	}
}

// Drop evicts all sessions from memory. They are read again when they are opened;
// nothing is lost.
func (a *shared) Drop() {
	a.mu.Lock()
	clear(a.open)
	clear(a.heads)
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		memo.(transact.Memo).Drop()
	}
}
