package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
)

// Options say how sessions are kept and planned. The zero value is useful.
type Options struct {
	// Tenant whose sessions these are. See Sessions.For.
	Tenant furl.Tenant
	// Catalog knows the models. If nil, the built-in one.
	Catalog *catalog.Catalog
	// Window, if not zero, is the context window to stay within, in tokens,
	// whatever the catalogue says of a model.
	Window int
	// LastWindow has each session stay within the window that its newest
	// request was planned for (storage.Meta.Window), if Window is zero: who looks
	// at sessions beside a gateway sees the limit that the gateway keeps to.
	LastWindow bool
	// Policy is the name of the policy of sessions that have none of their
	// own. If empty, defaultPolicy.
	Policy string
	// Policies are the policies that can be chosen by name, with their options.
	// If nil, the presets with their defaults (policy.NewSet).
	Policies *policy.Set
	// Settings hold for all policies. A session's own settings come before
	// them. If there is a Summarizer, a plan may ask it, and Fit waits for its
	// answer; the session can be used in the meantime.
	Settings policy.Settings
	// Counter counts tokens. If nil, that of the model at hand (token.For).
	Counter furl.Counter
	// Indexer, if not nil, is told of what is appended, so that one that runs
	// beside the program has it indexed at once. Searches need none.
	Indexer *recall.Indexer
	// Vectors, if not nil, has searches find by meaning too. Whoever made it
	// runs it.
	Vectors *recall.Vectors
	// Recall says that models can call furl's recall tools.
	Recall bool
	// Refuse makes an exchange that furl cannot prepare an error, instead of
	// a request that goes on unchanged; see Sessions.Begin.
	Refuse bool
	// Keep is how many sessions stay open in memory after they were used, and
	// KeepBytes about how many bytes of memory those may take. If zero, 256
	// and 128 MiB. Those that were not used for two minutes have a quarter of
	// the bytes.
	Keep      int
	KeepBytes int64
	// MaxMemory is about how many bytes of memory all open sessions may take,
	// those in use included. A session for which there is no room is not read
	// and does not grow: the error wraps ErrMemory. If zero, 384 MiB, which is
	// 200,000 records with 100 MB of messages.
	MaxMemory int64
	// Poll is how often a Watch looks for what other processes appended
	// where the store cannot tell. If zero, a second.
	Poll time.Duration
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
	// NewID names new sessions. If nil, ids are random.
	NewID func() furl.SessionID
	// Logger is told what went wrong without being an error to anybody. If
	// nil, nothing is logged. Contents of messages never are.
	Logger *slog.Logger
}

// defaultPolicy is the policy of sessions without a chosen one.
const defaultPolicy = "auto"

// Sessions are the sessions of one tenant in a store. It is safe for
// concurrent use.
type Sessions struct {
	*shared
	tenant furl.Tenant
}

// shared is what the handles of all tenants have in common.
type shared struct {
	store    storage.Store
	o        Options                 // of these, Configure changes some:
	current  atomic.Pointer[Options] // they are read by live
	log      *slog.Logger
	searcher *recall.Searcher
	indexer  *recall.Indexer // of sessions that are searched

	mu    sync.Mutex
	open  map[furl.SessionKey]*cached
	clock uint64             // counts uses
	memo  sync.Map           // see Sessions.Memo
	tips  map[tipKey]*cached // open sessions by where they end
	// learned is what providers have told of models, by the name that requests
	// give them.
	learned map[string]learned
	// What is worked out once: models by the name that requests give them,
	// and the sizes of instructions and tools.
	models    map[string]furl.Model
	preambles map[preambleKey]preambleSize

	unknown map[string]bool // models whose window is unknown
	// late are summaries that were never shown.
	late struct {
		n       int
		dollars float64
	}

	storeErrors atomic.Int64
	refusing    refusing
}

type cached struct {
	s    *Session
	used uint64      // orders the uses
	at   time.Time   // of the newest
	tip  furl.Digest // under which it is in tips; zero: it is not
}

// defaults fills in what is not set.
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

// New gives the sessions in a store. The store stays the caller's to close. An
// unknown policy, or options that make no sense, are an error.
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
		tips:     make(map[tipKey]*cached),
		searcher: recall.NewSearcher(store, &recall.SearcherOptions{Vectors: o.Vectors, Log: o.Logger}),
		indexer:  o.Indexer,
	}
	if sh.indexer == nil {
		sh.indexer = recall.NewIndexer(store, &recall.IndexerOptions{Log: o.Logger})
	}
	sh.current.Store(&o)
	return &Sessions{sh, o.Tenant}, nil
}

// For gives the sessions of another tenant in the same store. Nothing passes
// between tenants but the memory that open sessions share.
func (a *Sessions) For(tenant furl.Tenant) *Sessions { return &Sessions{a.shared, tenant} }

// Tenant is whose sessions these are.
func (a *Sessions) Tenant() furl.Tenant { return a.tenant }

// Store is where they are kept.
func (a *Sessions) Store() storage.Store { return a.store }

// newID gives twelve letters and digits at random: 60 bits, of which the first
// few are enough to name a session among those of one person.
func newID() furl.SessionID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	id := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
	return furl.SessionID(strings.ToLower(id[:12]))
}

// Create makes a session. It is in the store from its first record on.
func (a *Sessions) Create(meta storage.Meta) *Session {
	return a.CreateAs(a.o.NewID(), meta)
}

// CreateAs is Create for a session with a given id. One of that id that is in memory
// stays as it is.
func (a *Sessions) CreateAs(id furl.SessionID, meta storage.Meta) *Session {
	s := a.get(furl.SessionKey{Tenant: a.tenant, Session: id})
	s.mu.Lock()
	defer s.mu.Unlock()
	if sameMeta(s.meta, storage.Meta{}) {
		s.meta = meta
	}
	return s
}

// Open gives the session with that id, as it is in the store now. What was
// read before is not read again. A session that does not exist is an error
// wrapping storage.ErrNoSession.
func (a *Sessions) Open(ctx context.Context, id furl.SessionID) (*Session, error) {
	if !storage.ValidID(id) {
		return nil, fmt.Errorf("open session %q: %w", id, storage.ErrNoSession)
	}
	s := a.get(furl.SessionKey{Tenant: a.tenant, Session: id})
	if err := s.refresh(ctx); err != nil {
		if errors.Is(err, storage.ErrNoSession) || errors.Is(err, ErrMemory) && s.busy.Load() == 0 {
			a.forget(s)
		}
		return nil, err
	}
	return s, nil
}

// Match finds the sessions that have messages whose chains of digests are among the
// given ones; see storage.Store.
func (a *Sessions) Match(ctx context.Context, chains []furl.Digest, limit int) ([]storage.Matched, error) {
	found, err := a.store.Match(ctx, a.tenant, chains, limit)
	if err != nil {
		a.storeError(ctx, err)
	}
	return found, err
}

// MetaOf is what is known about a session beside its records, which are not read;
// zero if there is none of that id.
func (a *Sessions) MetaOf(ctx context.Context, id furl.SessionID) (storage.Meta, error) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	c := a.open[key]
	a.mu.Unlock()
	if c != nil {
		return c.s.Meta(), nil
	}
	info, _, err := a.stored(ctx, key)
	if err != nil {
		return storage.Meta{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return info.Meta, nil
}

// Options are the options as they are now; see Configure. They must not be changed.
func (a *shared) Options() *Options { return a.live() }

// List gives what is known about the sessions, the one with the newest record
// first.
func (a *Sessions) List(ctx context.Context, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return a.store.Sessions(ctx, a.tenant, q)
}

// Newest lists sessions by when something last happened in them
// (SessionInfo.Newest), the newest first, as many as q.Limit says. Those that
// were imported are sorted by the times of their recordings.
func (a *Sessions) Newest(ctx context.Context, q storage.SessionQuery) ([]storage.SessionInfo, error) {
	limit := q.Limit
	q.Limit = 0
	var list []storage.SessionInfo
	for info, err := range a.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		// They come by when they were stored, which is never before that.
		if limit > 0 && len(list) == limit && !info.Updated.After(list[limit-1].Newest()) {
			break
		}
		at, _ := slices.BinarySearchFunc(list, info, func(x, y storage.SessionInfo) int {
			if x.Newest().Before(y.Newest()) {
				return 1
			}
			return -1 // after those of the same time
		})
		list = slices.Insert(list, at, info)
		if limit > 0 {
			list = list[:min(len(list), limit)]
		}
	}
	return list, nil
}

// AmbiguousError says that several sessions have a name.
type AmbiguousError struct {
	Name string
	// Sessions are some of those it could mean, the newest first.
	Sessions []storage.SessionInfo
}

func (e *AmbiguousError) Error() string {
	ids := make([]string, len(e.Sessions))
	for i := range e.Sessions {
		ids[i] = string(e.Sessions[i].Session)
	}
	return fmt.Sprintf("%q could be any of the sessions %s", e.Name, strings.Join(ids, ", "))
}

// Latest is the name by which Find knows the session with the newest record.
const Latest = "latest"

// Find opens the session that a person means: by its id, by what only its id
// begins with, by its title or by what only its title begins with or holds,
// without regard to case; or the newest, by Latest. A "…" at the end is for
// what a list has cut off. Several are an *AmbiguousError, none an error wrapping
// storage.ErrNoSession.
func (a *Sessions) Find(ctx context.Context, name string) (*Session, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil, fmt.Errorf("a session without a name: %w", storage.ErrNoSession)
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

// find gives the sessions that fit a name best.
func (a *Sessions) find(ctx context.Context, name string) ([]storage.SessionInfo, error) {
	if name == Latest {
		return a.latest(ctx)
	}
	fits := make([][]storage.SessionInfo, 4) // best first
	lower := strings.ToLower(name)
	for info, err := range a.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		title := strings.ToLower(info.Title)
		switch {
		case strings.HasPrefix(string(info.Session), name):
			fits[0] = append(fits[0], info)
		case title == lower:
			fits[1] = append(fits[1], info)
		case strings.HasPrefix(title, lower):
			fits[2] = append(fits[2], info)
		case strings.Contains(title, lower):
			fits[3] = append(fits[3], info)
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

// latest is the session with the newest record, as long as there is one. They
// are listed by when they were stored, which is never before that.
func (a *Sessions) latest(ctx context.Context) (best []storage.SessionInfo, err error) {
	for info, err := range a.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		if len(best) > 0 && !info.Updated.After(best[0].Newest()) {
			break
		}
		if len(best) == 0 || info.Newest().After(best[0].Newest()) {
			best = []storage.SessionInfo{info}
		}
	}
	return best, nil
}

// Delete removes a session whole, where the store can.
func (a *Sessions) Delete(ctx context.Context, id furl.SessionID) error {
	d, ok := a.store.(storage.Deleter)
	if !ok {
		return fmt.Errorf("delete session %s: the store cannot delete: %w", id, errors.ErrUnsupported)
	}
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	if err := d.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	a.deleted(id)
	return nil
}

// deleted forgets a session that is no longer there.
func (a *Sessions) deleted(id furl.SessionID) {
	key := furl.SessionKey{Tenant: a.tenant, Session: id}
	a.mu.Lock()
	if c := a.open[key]; c != nil {
		a.drop(c)
	}
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		memo.(Memo).Deleted(key)
	}
}

// Model is what is known about a model under the name that requests give it:
// with the user's own window if there is one, and no more than what its
// provider has said that it takes. One that the catalogue does not have has no
// window unless either gives one.
func (a *shared) Model(name string, format furl.Format) furl.Model {
	m, known := a.lookUp(name)
	if !known {
		m = catalog.Unknown(name, format)
	}
	if a.live().Window > 0 {
		m.Window = a.live().Window
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.learned[name].window; n > 0 && (m.Window == 0 || n < m.Window) {
		m.Window = n
	}
	return m
}

// maxModels bounds how many models are remembered by name.
const maxModels = 1000

// lookUp is the catalogue's, remembered: it tries many spellings of a name.
func (a *shared) lookUp(name string) (furl.Model, bool) {
	a.mu.Lock()
	m, ok := a.models[name]
	a.mu.Unlock()
	if ok {
		return m, true
	}
	live := a.live()
	m, known := live.Catalog.Lookup(name)
	if !known {
		return m, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if live != a.live() {
		return m, true // of a catalogue that was replaced meanwhile
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

// get gives the one open session of a key, a new empty one if there is none.
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

// Trim lets go of sessions in memory that were not used for two minutes, as
// far as there are more than Options.KeepBytes says, and of what was decoded for
// them. Requests of new sessions do the same; Trim is for times without any. It
// reports whether there was something to let go of.
func (a *shared) Trim() bool {
	a.mu.Lock()
	was := len(a.open)
	a.trim(nil)
	gone := was > len(a.open)
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		gone = memo.(Memo).Trim() || gone
	}
	return gone
}

// Memo is what Sessions.Memo keeps.
type Memo interface {
	// Trim lets go of what was not used for long, and reports whether there was
	// anything.
	Trim() bool
	// Deleted lets go of what belongs to a session that was deleted.
	Deleted(key furl.SessionKey)
	// Drop lets go of everything.
	Drop()
}

// Memo returns what is kept in memory with the sessions of all tenants under a key,
// as create made it.
func (a *shared) Memo(key any, create func() Memo) Memo {
	v, ok := a.memo.Load(key)
	if !ok {
		v, _ = a.memo.LoadOrStore(key, create())
	}
	return v.(Memo)
}

// Forget lets go of a session that is not in the store, and that nobody holds.
func (a *shared) Forget(s *Session) {
	s.mu.Lock()
	empty := s.busy.Load() == 0 && s.log.Len() == 0 && !s.stale
	s.mu.Unlock()
	if empty {
		a.forget(s)
	}
}

// forget lets go of a session that does not exist in the store.
func (a *shared) forget(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.open[s.key]; c != nil && c.s == s {
		a.drop(c)
	}
}

// Drop lets go of all sessions in memory. They are read again when they are
// opened; nothing is lost.
func (a *shared) Drop() {
	a.mu.Lock()
	clear(a.open)
	clear(a.tips)
	a.mu.Unlock()
	for _, memo := range a.memo.Range {
		memo.(Memo).Drop()
	}
}

// InMemory gives the tenant's open sessions, by id.
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
