// Package clients keeps in memory what a process remembers of clients that resend their
// history: in which sessions their conversations are, and the messages of their latest
// requests. It is for all tenants. All of it can be lost at any time: it is found again in
// the store, or computed again.
package clients

import (
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Clients is what is remembered. It is safe for concurrent use.
type Clients struct {
	// Decodes are the decoded messages of recent requests.
	Decodes Decodes

	mu       sync.Mutex
	hints    map[hintKey]furl.SessionID
	reworded map[chainKey]furl.SessionID
	threads  map[threadKey]Place
	newest   map[furl.Tenant]Newest
}

// The keys of the caches.
type (
	hintKey struct {
		tenant furl.Tenant
		hint   string
	}
	chainKey struct {
		tenant furl.Tenant
		chain  furl.Digest
	}
	threadKey struct {
		tenant furl.Tenant
		reply  string
	}
)

// maxEntries is the largest number of entries of each cache.
const maxEntries = 4096

// New returns what is remembered without any request. keep and keepBytes are those of the
// sessions in memory.
func New(keep int, keepBytes int64) *Clients {
	return &Clients{
		Decodes:  Decodes{maxPrefixes: keep, maxBytes: keepBytes / 2},
		hints:    make(map[hintKey]furl.SessionID),
		reworded: make(map[chainKey]furl.SessionID),
		threads:  make(map[threadKey]Place),
		newest:   make(map[furl.Tenant]Newest),
	}
}

// put adds an entry to a cache, which is emptied if it is full.
func put[K comparable, V any](cache map[K]V, key K, value V) {
	if len(cache) >= maxEntries {
		clear(cache)
	}
	cache[key] = value
}

// OfHint returns the session of a client's own id of its conversation.
func (c *Clients) OfHint(t furl.Tenant, hint string) (furl.SessionID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.hints[hintKey{t, hint}]
	return id, ok
}

// SetHint sets the session of a hint.
func (c *Clients) SetHint(t furl.Tenant, hint string, id furl.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	put(c.hints, hintKey{t, hint}, id)
}

// HintOr returns the session of a hint. If there is none, it is set to id.
func (c *Clients) HintOr(t furl.Tenant, hint string, id furl.SessionID) furl.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.hints[hintKey{t, hint}]; ok {
		return was
	}
	put(c.hints, hintKey{t, hint}, id)
	return id
}

// OfReworded returns the session of a history by the chain of its start with the first
// reply as the client has reworded it.
func (c *Clients) OfReworded(t furl.Tenant, chain furl.Digest) (furl.SessionID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.reworded[chainKey{t, chain}]
	return id, ok
}

// SetReworded sets the session of such a history.
func (c *Clients) SetReworded(t furl.Tenant, chain furl.Digest, id furl.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	put(c.reworded, chainKey{t, chain}, id)
}

// ForgetReworded forgets the session of such a history.
func (c *Clients) ForgetReworded(t furl.Tenant, chain furl.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.reworded, chainKey{t, chain})
}

// Place is where the conversation of a thread continues: the last record of its newest
// reply.
type Place struct {
	Session furl.SessionID
	Head    furl.Seq
}

// OfThread returns where a thread continues, by the provider's id of its newest reply.
func (c *Clients) OfThread(t furl.Tenant, reply string) (Place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.threads[threadKey{t, reply}]
	return at, ok
}

// SetThread sets where a thread continues.
func (c *Clients) SetThread(t furl.Tenant, reply string, at Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	put(c.threads, threadKey{t, reply}, at)
}

// Newest are the sessions of a tenant that were stored last, and until when they count.
type Newest struct {
	Until time.Time
	List  []storage.SessionInfo
}

// Newest returns the sessions of a tenant that were stored last.
func (c *Clients) Newest(t furl.Tenant) (Newest, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.newest[t]
	return n, ok
}

// SetNewest sets the sessions of a tenant that were stored last.
func (c *Clients) SetNewest(t furl.Tenant, n Newest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	put(c.newest, t, n)
}

// Trim forgets the messages of requests that have become old, and reports whether there were
// any.
func (c *Clients) Trim() bool { return c.Decodes.trimIdle() }

// Forget forgets everything.
func (c *Clients) Forget() {
	c.Decodes.clear()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.hints)
	clear(c.reworded)
	clear(c.threads)
	clear(c.newest)
}

// Deleted forgets a session that was deleted.
func (c *Clients) Deleted(key furl.SessionKey) {
	c.Decodes.clear() // it may hold the session's texts
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.newest, key.Tenant)
	for k, v := range c.hints {
		if v == key.Session && k.tenant == key.Tenant {
			delete(c.hints, k)
		}
	}
}
