package recall

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/furlhq/furl"
)

// look is one search's view of the sessions in its scope.
type look struct {
	ctx    context.Context
	s      *Searcher
	req    *Request
	seen   damages
	q      *Query
	corpus corpus
	units  []*sessionUnit // as in corpus

	// inside has, of the only session in scope, the terms that contain a
	// pattern.
	inside map[string][]termHash

	mu     sync.Mutex
	err    error // the first that a callback of the ranking met
	failed atomic.Bool
}

// sessionUnit is one session in a look: its segments, and behind them the
// records that no page speaks of yet.
type sessionUnit struct {
	sessionIndex
	tail *batch

	bases    []int // of the segments' documents, and of the tail's
	docs     int
	length   uint64
	newest   int64
	postings [][]chunk  // of the query's terms
	lens     []uint32   // nil before they are asked for
	docTab   []document // nil before they are asked for
}

// Bounds of the records that a search reads for itself. If there are more
// above a cursor, it has them indexed first.
const (
	tailRecords = 1024
	tailBytes   = 1 << 20
)

func (s *Searcher) look(ctx context.Context, req *Request, q *Query, seen damages) (*look, error) {
	l := &look{ctx: ctx, s: s, req: req, q: q, seen: seen}
	if req.Session == "" { // each term is a page of each session
		l.corpus.wide, l.corpus.skip = true, q.common()
	}
	units, err := s.units(ctx, furl.SessionKey{Tenant: req.Tenant, Session: req.Session}, seen)
	if err != nil {
		return nil, err
	}
	if l.units, err = l.postings(units); err != nil {
		return nil, err
	}
	// From the oldest to the newest, by what the messages themselves say.
	slices.SortFunc(l.units, func(a, b *sessionUnit) int {
		return cmp.Or(cmp.Compare(a.newest, b.newest), strings.Compare(string(a.key.Session), string(b.key.Session)))
	})
	l.corpus.units = make([]unit, len(l.units))
	for i, u := range l.units {
		l.corpus.docs += u.docs
		l.corpus.length += u.length
		l.corpus.units[i] = unit{docs: u.docs, postings: u.postings, lens: func() []uint32 { return l.lengths(u) }}
	}
	l.corpus.containing = l.containing
	if len(l.units) == 1 {
		l.corpus.inside = l.lookInside
	}
	if l.corpus.wide && req.Only == nil { // which is asked by one at a time
		l.corpus.atOnce = processors()
	}
	return l, nil
}

// units gives the sessions in scope with what is above their cursors.
func (s *Searcher) units(ctx context.Context, key furl.SessionKey, seen damages) ([]*sessionUnit, error) {
	if key.Session != "" {
		u, err := s.unit(ctx, key, seen)
		return []*sessionUnit{u}, err
	}
	// Sessions that are behind come first: what is indexed between the two
	// questions is then asked for twice, not never.
	units := make(map[furl.SessionID]*sessionUnit)
	behind, err := s.behind(ctx, key.Tenant)
	if err != nil {
		return nil, err
	}
	if s.indexer.pages != nil {
		all, err := heads(ctx, s.indexer.pages, key, seen)
		if err != nil {
			return nil, err
		}
		for _, si := range all {
			units[si.key.Session] = &sessionUnit{sessionIndex: si}
		}
	}
	for lost := range seen {
		if !seen.without(lost) {
			continue
		}
		u, err := s.unit(ctx, lost, seen)
		if errors.Is(err, furl.ErrNoSession) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		units[lost.Session] = u
	}
	for _, key := range behind {
		if seen.without(key) {
			continue
		}
		u := units[key.Session]
		if u == nil {
			u = &sessionUnit{sessionIndex: sessionIndex{key: key}}
			units[key.Session] = u
		}
		long, err := s.readTail(ctx, u)
		if err == nil && long {
			u, err = s.unit(ctx, key, seen)
			units[key.Session] = u
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Values(units)), nil
}

func (s *Searcher) behind(ctx context.Context, tenant furl.Tenant) ([]furl.SessionKey, error) {
	list := s.store.Sessions(ctx, tenant, furl.SessionQuery{})
	if s.indexer.pages != nil {
		list = s.indexer.pages.Behind(ctx, tenant)
	}
	var keys []furl.SessionKey
	for info, err := range list {
		if err != nil {
			return nil, err
		}
		keys = append(keys, info.SessionKey)
	}
	return keys, nil
}

// unit gives one session.
func (s *Searcher) unit(ctx context.Context, key furl.SessionKey, seen damages) (*sessionUnit, error) {
	indexed := seen.without(key)
	for {
		u := &sessionUnit{sessionIndex: sessionIndex{key: key}}
		if s.indexer.pages != nil {
			all, err := heads(ctx, s.indexer.pages, key, seen)
			if err != nil {
				return nil, err
			}
			if len(all) > 0 {
				u.sessionIndex = all[0]
			}
		}
		long, err := s.readTail(ctx, u)
		if err != nil {
			return nil, err
		}
		if !long || indexed || s.indexer.pages == nil {
			if long {
				_, err = s.readWhole(ctx, u)
			}
			return u, err
		}
		indexed = true
		if err := s.indexer.Catchup(ctx, key); err != nil {
			s.log.Warn("index before a search", "session", key.Session, "err", err)
		}
	}
}

// readTail reads the records above the cursor. It stops and reports it if
// there are too many.
func (s *Searcher) readTail(ctx context.Context, u *sessionUnit) (long bool, err error) {
	return s.read(ctx, u, tailRecords, tailBytes)
}

func (s *Searcher) readWhole(ctx context.Context, u *sessionUnit) (long bool, err error) {
	return s.read(ctx, u, 1<<62, 1<<62)
}

func (s *Searcher) read(ctx context.Context, u *sessionUnit, records furl.Seq, bytes int) (long bool, err error) {
	b := &batch{after: u.covered(), to: u.covered()}
	if n := len(u.segments); n > 0 {
		b.calls.open = slices.Clone(u.segments[n-1].calls.open)
	}
	u.tail = b
	for r, err := range s.store.Read(ctx, u.key, b.after) {
		if err != nil {
			return false, err
		}
		if b.to-b.after >= records || b.bytes >= bytes {
			return true, nil
		}
		b.add(&r)
	}
	return false, nil
}

// count sums up what the segments and the tail have.
func (u *sessionUnit) count() {
	u.bases, u.docs, u.length, u.newest = u.bases[:0], 0, 0, 0
	for _, seg := range u.segments {
		u.bases = append(u.bases, u.docs)
		u.docs += seg.docs
		u.length += seg.length
		u.newest = max(u.newest, seg.newest)
	}
	u.bases = append(u.bases, u.docs)
	if u.tail != nil {
		u.docs += len(u.tail.docs)
		u.length += u.tail.index.total
		for i := range u.tail.docs {
			u.newest = max(u.newest, u.tail.docs[i].at)
		}
	}
}

// fail keeps the first error that a callback of the ranking meets.
func (l *look) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		l.failed.Store(true)
	}
}

func (l *look) lengths(u *sessionUnit) []uint32 {
	if u.lens == nil {
		u.lens = make([]uint32, 0, u.docs)
		for _, seg := range u.segments {
			lens, err := seg.lengths(u.lens)
			if err != nil {
				l.fail(damaged(u.key, err))
				lens = append(u.lens, make([]uint32, seg.docs)...)
			}
			u.lens = lens
		}
		if u.tail != nil {
			u.lens = append(u.lens, u.tail.index.lens...)
		}
	}
	return u.lens
}

// documents gives what is known about the documents of a session.
func (l *look) documents(u *sessionUnit) ([]document, error) {
	if u.docTab != nil || u.docs == 0 {
		return u.docTab, nil
	}
	docs := make([]document, u.docs)
	put := func(seg *segment, payload []byte) error {
		d, err := readDocs(payload, seg.docs)
		i, _ := u.number(seg.to)
		copy(docs[u.bases[i]:], d)
		return err
	}
	for _, seg := range u.segments {
		if seg.packed {
			if err := put(seg, seg.table); err != nil {
				return nil, damaged(u.key, err)
			}
		}
	}
	if l.s.indexer.pages != nil {
		if err := part(l.ctx, l.s.indexer.pages, u.key, u.segments, bucketDocs, every, put); err != nil {
			return nil, err
		}
	}
	if u.tail != nil {
		copy(docs[u.bases[len(u.segments)]:], u.tail.docs)
	}
	u.docTab = docs
	return docs, nil
}

// number finds a segment.
func (u *sessionUnit) number(to furl.Seq) (int, bool) {
	return slices.BinarySearchFunc(u.segments, to, func(s *segment, to furl.Seq) int { return cmp.Compare(s.to, to) })
}

// only is the request's filter.
func (l *look) only(n int, doc uint32) bool {
	if l.failed.Load() {
		return false
	}
	if !l.req.filtered() {
		return true
	}
	u := l.units[n]
	docs, err := l.documents(u)
	if err != nil {
		l.fail(err)
		return false
	}
	return l.req.wants(u.key.Session, &docs[doc])
}

// describe reads what is known about the documents of the sessions of hits.
func (l *look) describe(hits []ranked) error {
	var units []int
	for _, r := range hits {
		units = append(units, r.unit)
	}
	slices.Sort(units)
	units = slices.Compact(units)
	errs := make([]error, len(units))
	eachAtOnce(len(units), readers, func(i int) { _, errs[i] = l.documents(l.units[units[i]]) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// found describes a hit.
func (l *look) found(r *ranked) (Found, error) {
	u := l.units[r.unit]
	docs, err := l.documents(u)
	if err != nil {
		return Found{}, err
	}
	f := docs[r.doc.doc].found(u.key.Session)
	f.Score, f.Exact = r.score, r.exact
	return f, nil
}

func (d *document) found(session furl.SessionID) Found {
	return Found{Session: session, Pos: d.pos, Role: d.role, Kind: d.kind, Tool: d.tool, At: timeOf(d.at), Error: d.error}
}

// postings finds the documents of the query's terms in these sessions. Those
// whose pages change meanwhile are asked for again, one by one.
func (l *look) postings(units []*sessionUnit) ([]*sessionUnit, error) {
	hashes := make(map[termHash]int, len(l.q.Terms)) // numbers of terms
	for i := range l.q.Terms {
		if l.corpus.skip>>i&1 != 0 {
			continue
		}
		hashes[hashOf(l.q.Terms[i].Text, l.q.Terms[i].Kind == Name)] = i
	}
	sorted := slices.Sorted(maps.Keys(hashes))
	look := func(units []*sessionUnit) (stale []*sessionUnit, err error) {
		for _, u := range units {
			u.begin(l.q, l.corpus.skip)
		}
		return l.lookUp(units, sorted, readers, func(f finding) {
			u, i := units[f.unit], hashes[f.hash]
			f.list.base = uint32(u.bases[f.segment])
			u.postings[i] = append(u.postings[i], f.list)
		})
	}
	stale, err := look(units)
	if err != nil || len(units) == 1 && len(stale) > 0 {
		return nil, cmp.Or(err, errStale)
	}
	for _, old := range stale {
		units = slices.DeleteFunc(units, func(u *sessionUnit) bool { return u == old })
		for lost := 0; ; lost++ {
			u, err := l.s.unit(l.ctx, old.key, l.seen)
			if errors.Is(err, furl.ErrNoSession) {
				break // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			again, err := look([]*sessionUnit{u})
			if err != nil {
				return nil, err
			}
			if len(again) == 0 {
				units = append(units, u)
				break
			}
			if lost == maxStale {
				return nil, errStale
			}
		}
	}
	for _, u := range units {
		for _, list := range u.postings {
			slices.SortFunc(list, func(a, b chunk) int { return cmp.Compare(a.base, b.base) })
		}
	}
	return units, nil
}

// begin counts what the session has, and finds the query's terms in its tail.
func (u *sessionUnit) begin(q *Query, skip uint64) {
	u.count()
	u.postings = make([][]chunk, len(q.Terms))
	if u.tail != nil {
		u.postings = u.tail.index.unit(q).postings
		for n, list := range u.postings {
			if skip>>n&1 != 0 {
				u.postings[n] = nil
			}
			for i := range list {
				list[i].base = uint32(u.bases[len(u.segments)])
			}
		}
	}
}
