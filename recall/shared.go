package recall

import (
	"context"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// shared is what searches of all sessions of a tenant have in common until the store
// changes. Searches must not change it.
type shared struct {
	tenant   furl.Tenant
	version  uint64
	withTail []furl.SessionKey
	sessions []sessionSegments
	copied   map[furl.SessionID]furl.Seq // the last record that a fork has of its original

	mu    sync.Mutex
	found map[termHash][]foundTerm // by the index of the session
	lists int                      // size of the posting lists in found, in bytes
}

// Limits of what a Searcher keeps between searches, in bytes.
const (
	maxSharedHeads = 32 << 20
	maxSharedLists = 4 << 20
	foundSize      = 64 // of a foundTerm, without its list
)

// sharedCache keeps what the last search has read.
type sharedCache struct {
	mu   sync.Mutex
	last *shared
}

// shared returns the sessions of a tenant. It reads them again if the store has changed
// or cannot tell.
func (s *Searcher) shared(ctx context.Context, tenant furl.Tenant, damage damageCounts) (*shared, error) {
	now := &shared{tenant: tenant, found: make(map[termHash][]foundTerm)}
	store, keep := s.store.(storage.Versioned)
	if keep = keep && len(damage) == 0; keep {
		var err error
		if now.version, err = store.Version(ctx); err != nil {
			return nil, err
		}
		s.cache.mu.Lock()
		last := s.cache.last
		s.cache.mu.Unlock()
		if last != nil && last.tenant == tenant && last.version == now.version {
			return last, nil
		}
	}
	// The sessions with a tail are listed before the heads are read: what is
	// indexed between the two is then read twice, not never.
	var err error
	if now.withTail, err = s.sessionsWithTail(ctx, tenant); err != nil {
		return nil, err
	}
	if now.copied, err = s.copied(ctx, tenant); err != nil {
		return nil, err
	}
	if s.indexer.pages != nil {
		if now.sessions, err = readHeads(ctx, s.indexer.pages, furl.SessionKey{Tenant: tenant}, damage); err != nil {
			return nil, err
		}
	}
	if keep && now.size() <= maxSharedHeads {
		s.cache.mu.Lock()
		s.cache.last = now
		s.cache.mu.Unlock()
	}
	return now, nil
}

// copied returns the forks whose originals are in the store, with the last record that they
// have of them.
func (s *Searcher) copied(ctx context.Context, tenant furl.Tenant) (map[furl.SessionID]furl.Seq, error) {
	copied := make(map[furl.SessionID]furl.Seq)
	of := make(map[furl.SessionID]furl.SessionID)
	known := make(map[furl.SessionID]bool)
	for info, err := range s.store.Sessions(ctx, tenant, storage.SessionQuery{}) {
		if err != nil {
			return nil, err
		}
		known[info.Session] = true
		if info.ForkOf != "" && info.ForkAt > 0 {
			copied[info.Session], of[info.Session] = info.ForkAt, info.ForkOf
		}
	}
	for fork, original := range of {
		if !known[original] || inCircle(fork, of) {
			delete(copied, fork)
		}
	}
	return copied, nil
}

// inCircle reports whether a session is a fork of its own forks, so that no session would have its
// records.
func inCircle(fork furl.SessionID, of map[furl.SessionID]furl.SessionID) bool {
	at := of[fork]
	for range len(of) {
		if at == fork {
			return true
		}
		at = of[at]
	}
	return false
}

// size returns about how much memory the heads take, in bytes.
func (h *shared) size() (n int) {
	for i := range h.sessions {
		for _, seg := range h.sessions[i].segments {
			n += 256 + len(seg.lengths) + len(seg.documents) + len(seg.terms) + len(seg.vocabulary)
		}
	}
	return n
}

// known calls use for those of the terms that were looked up before, and returns the
// others.
func (h *shared) known(hashes []termHash, use func(foundTerm)) (others []termHash) {
	h.mu.Lock()
	var known [][]foundTerm
	for _, hash := range hashes {
		if found, ok := h.found[hash]; ok {
			known = append(known, found)
		} else {
			others = append(others, hash)
		}
	}
	h.mu.Unlock()
	for _, found := range known {
		for _, f := range found {
			use(f)
		}
	}
	return others
}

// keep keeps the terms that were looked up. If they do not fit, it drops all others.
func (h *shared) keep(hashes []termHash, all []foundTerm) {
	size := 0
	found := make(map[termHash][]foundTerm, len(hashes))
	for _, hash := range hashes {
		found[hash] = nil
	}
	for _, f := range all {
		size += foundSize + len(f.list.buf)
	}
	if size > maxSharedLists {
		return
	}
	lists := make([]byte, 0, size) // the lists are in larger chunks
	for _, f := range all {
		from := len(lists)
		lists = append(lists, f.list.buf...)
		f.list.buf = lists[from:len(lists):len(lists)]
		found[f.hash] = append(found[f.hash], f)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lists+size > maxSharedLists {
		clear(h.found)
		h.lists = 0
	}
	for hash, list := range found {
		if _, ok := h.found[hash]; !ok {
			h.found[hash] = list
		}
	}
	h.lists += size + foundSize*len(hashes)
}
