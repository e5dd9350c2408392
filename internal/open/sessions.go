package open

import (
	"context"
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
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
)

// Options are what the core of sessions needs of session.Options, which documents them. All
// but the pointers to bool, Counter, Reported and Appended are set.
type Options struct {
	Catalog    *catalog.Catalog
	Window     int
	LastWindow bool
	// Reported returns the window and the largest output that the provider's models API
	// reports of a model, 0 if unknown.
	Reported func(model string, format furl.Format) (window, maxOutput int)
	Policy   string
	Policies *policy.Set
	Settings policy.Settings
	AskFirst *bool
	Commands *bool
	Recall   bool
	Counter  furl.Counter
	// Appended is called after records with so many bytes of messages were appended
	// to a session, which then has records.
	Appended func(key furl.SessionKey, records furl.Seq, bytes int)
	// Searcher and Indexer are of the search index, for package session.
	Searcher  *recall.Searcher
	Indexer   *recall.Indexer
	Keep      int
	KeepBytes int64
	MaxMemory int64
	Poll      time.Duration
	Now       func() time.Time
	NewID     func() furl.SessionID
	Logger    *slog.Logger
}

// Sessions gives access to the sessions of one tenant in a store. It is safe for
// concurrent use.
type Sessions struct {
	*shared
	tenant furl.Tenant
}

// shared is the state of the Sessions of all tenants.
type shared struct {
	store   storage.Store
	o       Options                 // as given to New
	current atomic.Pointer[Options] // as changed by Configure; see live
	log     *slog.Logger

	mu     sync.Mutex
	open   map[furl.SessionKey]*cached
	uses   cached              // the ends of the list of open sessions by their last use, see cached
	memory int64               // sum of the sizes of the open sessions
	heads  map[headKey]*cached // open sessions by the chain at their head
	// limits are the limits that providers have reported, by the model's name in
	// requests.
	limits map[string]modelLimits
	// Caches: models by their name in requests, and sizes of preambles.
	models    map[string]furl.Model
	preambles map[preambleKey]PreambleSize

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

	clients     *clients.Clients
	failures    atomic.Int64 // of exchanges
	storeErrors atomic.Int64
	health      storeHealth
}

// New returns the sessions of a tenant in a store.
func New(store storage.Store, tenant furl.Tenant, o *Options) *Sessions {
	sh := &shared{
		store: store, o: *o, log: o.Logger,
		open:  make(map[furl.SessionKey]*cached),
		heads: make(map[headKey]*cached), clients: clients.New(o.Keep, o.KeepBytes),
	}
	sh.uses.newer, sh.uses.older = &sh.uses, &sh.uses
	sh.current.Store(o)
	return &Sessions{sh, tenant}
}

// Configure replaces Catalog, Window, Policy, Policies, Settings, AskFirst, Commands and
// Recall of the options, from the next request on. Requests in flight are not affected.
func (a *shared) Configure(o *Options) {
	a.current.Store(o)
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.models) // they are from the old catalog
	clear(a.preambles)
}

// Options returns the current options, which are read-only.
func (a *shared) Options() *Options { return a.live() }

// live returns the current options.
func (a *shared) live() *Options { return a.current.Load() }

// For returns the sessions of another tenant in the same store. Tenants share
// nothing except the memory limits.
func (a *Sessions) For(tenant furl.Tenant) *Sessions { return &Sessions{a.shared, tenant} }

// Tenant returns the tenant of the sessions.
func (a *Sessions) Tenant() furl.Tenant { return a.tenant }

// Store returns the store of the sessions.
func (a *Sessions) Store() storage.Store { return a.store }

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
	if SameMeta(s.meta, storage.Meta{}) {
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
	if err := s.Refresh(ctx); err != nil {
		if errors.Is(err, storage.ErrNoSession) || errors.Is(err, ErrMemory) && s.holders.Load() == 0 {
			a.Evict(s)
		}
		return nil, err
	}
	return s, nil
}

// Deleted evicts a session that was deleted from the store.
func (a *Sessions) Deleted(id furl.SessionID) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	if c := a.open[key]; c != nil {
		a.drop(c)
	}
	a.mu.Unlock()
	a.clients.Deleted(key)
}

// Model returns the description of a model by its name in requests, with the window
// of sessions that say nothing else; see Session.Model.
func (a *shared) Model(name string, format furl.Format) furl.Model {
	m := a.describe(name, format)
	a.setWindow(&m, name, format, a.ConfiguredWindow(&m), 0, 0)
	return m
}

// describe returns what the catalog says about a model, or what it assumes.
func (a *shared) describe(name string, format furl.Format) furl.Model {
	if m, ok := a.CatalogModel(name); ok {
		return m
	}
	return catalog.Unknown(name, format)
}

// maxModels is the largest number of cached models.
const maxModels = 1000

// CatalogModel returns a model of the catalog or of one of its families. It is cached,
// because the catalog tries many spellings of a name.
func (a *shared) CatalogModel(name string) (furl.Model, bool) {
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

// CounterOf returns the token counter of a model.
func (a *shared) CounterOf(m *furl.Model) furl.Counter {
	if a.o.Counter != nil {
		return a.o.Counter
	}
	return token.For(m)
}

// get returns the open session of a key, a new empty one if there is none.
func (a *shared) get(key furl.SessionKey) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.open[key]; c != nil {
		a.used(c)
		return c.s
	}
	s := &Session{all: a, key: key, log: furl.NewLog(), changed: make(chan struct{})}
	a.add(s)
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
	return a.clients.Trim() || gone
}

// Evict evicts a session.
func (a *shared) Evict(s *Session) {
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
	for _, c := range a.open {
		a.drop(c)
	}
	a.mu.Unlock()
	a.clients.Forget()
}

// dropTenant evicts the sessions of a tenant whose keys were destroyed.
func (a *shared) dropTenant(tenant furl.Tenant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, c := range a.open {
		if key.Tenant == tenant {
			a.drop(c)
		}
	}
}

// FindByHead returns the session in memory whose head has this chain of
// digests, nil if there is none.
func (a *Sessions) FindByHead(chain furl.Digest) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.heads[headKey{a.tenant, chain}]
	if c == nil {
		return nil
	}
	a.used(c)
	return c.s
}

// OpenCached is Open without reading the store if that was done within
// Options.Poll. Newer records of another process are noticed when this
// process appends.
func (a *Sessions) OpenCached(ctx context.Context, id furl.SessionID) (*Session, error) {
	a.mu.Lock()
	c := a.open[furl.SessionKey{Tenant: a.tenant, Session: id}]
	if c != nil {
		a.used(c)
	}
	a.mu.Unlock()
	read := false
	if c != nil {
		c.s.Read(func(now *Change) { read = now.RecentlyRead() })
	}
	if !read {
		return a.Open(ctx, id)
	}
	return c.s, nil
}

// InMemory returns the tenant's sessions in memory, sorted by id.
func (a *Sessions) InMemory() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*Session
	for k, c := range a.open {
		if k.Tenant == a.tenant {
			list = append(list, c.s)
		}
	}
	slices.SortFunc(list, func(x, y *Session) int { return strings.Compare(string(x.key.Session), string(y.key.Session)) })
	return list
}

// Forget evicts a session that has no records and is not in use.
func (a *Sessions) Forget(s *Session) {
	s.mu.Lock()
	empty := s.holders.Load() == 0 && s.log.Len() == 0 && !s.stale
	s.mu.Unlock()
	if empty {
		a.Evict(s)
	}
}

// Match returns the sessions that have messages with one of the given chains of
// digests; see storage.Store.
func (a *Sessions) Match(ctx context.Context, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	found, err := a.store.Match(ctx, a.tenant, chains, limit)
	if err != nil {
		a.storeError(ctx, err)
	}
	return found, err
}

// MetaOf returns the metadata of a session without reading its records, zero if
// the session does not exist.
func (a *Sessions) MetaOf(ctx context.Context, id furl.SessionID) (storage.Meta, error) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	c := a.open[key]
	a.mu.Unlock()
	if c != nil {
		return c.s.Meta(), nil
	}
	info, _, err := a.storedInfo(ctx, key)
	if err != nil {
		return storage.Meta{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return info.Meta, nil
}

// OthersHaveEnded reports whether all other processes that used the store at a time have
// ended, so that none of them is recording a reply to a request of that time.
func (a *Sessions) OthersHaveEnded(at time.Time) bool {
	e, ok := a.store.(storage.Exclusive)
	return ok && at.Before(e.AloneAt())
}

// Clients is what this process remembers of clients, for all tenants.
func (a *shared) Clients() *clients.Clients { return a.clients }

// CountFailure counts an exchange that could not be recorded or planned.
func (a *shared) CountFailure() { a.failures.Add(1) }

// Failures returns the number of exchanges that could not be recorded or planned
// since the program started.
func (a *shared) Failures() int64 { return a.failures.Load() }
