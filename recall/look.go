package recall

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// look is one search's view of the sessions in its scope.
type look struct {
	ctx    context.Context
	s      *Searcher
	req    *Request
	q      *Query
	corpus corpus
	units  []*sessionUnit // as in corpus
	err    error          // the first that a callback of the ranking met
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

func (s *Searcher) look(ctx context.Context, req *Request, q *Query) (*look, error) {
	l := &look{ctx: ctx, s: s, req: req, q: q}
	if req.Session == "" { // each term is a page of each session
		l.corpus.wide, l.corpus.skip = true, q.common()
	}
	units, err := s.units(ctx, furl.SessionKey{Tenant: req.Tenant, Session: req.Session})
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
	return l, nil
}

// units gives the sessions in scope with what is above their cursors.
func (s *Searcher) units(ctx context.Context, key furl.SessionKey) ([]*sessionUnit, error) {
	if key.Session != "" {
		u, err := s.unit(ctx, key)
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
		all, err := heads(ctx, s.indexer.pages, key)
		if err != nil {
			return nil, err
		}
		for _, si := range all {
			units[si.key.Session] = &sessionUnit{sessionIndex: si}
		}
	}
	for _, key := range behind {
		u := units[key.Session]
		if u == nil {
			u = &sessionUnit{sessionIndex: sessionIndex{key: key}}
			units[key.Session] = u
		}
		long, err := s.readTail(ctx, u)
		if err == nil && long {
			u, err = s.unit(ctx, key)
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
func (s *Searcher) unit(ctx context.Context, key furl.SessionKey) (*sessionUnit, error) {
	indexed := false
	for {
		u := &sessionUnit{sessionIndex: sessionIndex{key: key}}
		if s.indexer.pages != nil {
			all, err := heads(ctx, s.indexer.pages, key)
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
	if l.err == nil {
		l.err = err
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
	if l.err != nil {
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
		return l.lookUp(units, sorted, func(u *sessionUnit, seg int, e *entries) {
			c, i := e.list, hashes[e.hash]
			c.base = uint32(u.bases[seg])
			u.postings[i] = append(u.postings[i], c)
		})
	}
	stale, err := look(units)
	if err != nil || len(units) == 1 && len(stale) > 0 {
		return nil, cmp.Or(err, errStale)
	}
	for _, old := range stale {
		units = slices.DeleteFunc(units, func(u *sessionUnit) bool { return u == old })
		for lost := 0; ; lost++ {
			u, err := l.s.unit(l.ctx, old.key)
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

// lookUp finds terms by their hashes, which are in order, in all segments of
// some sessions. What found gets is its own. It gives those sessions whose
// pages have changed since their heads were read, of which not all is found.
func (l *look) lookUp(units []*sessionUnit, hashes []termHash, found func(u *sessionUnit, segment int, e *entries)) (stale []*sessionUnit, err error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	var levels [maxLevel + 1]bool
	of := make(map[furl.SessionID]*sessionUnit, len(units))
	for _, u := range units {
		of[u.key.Session] = u
		for i, seg := range u.segments {
			if !seg.packed {
				levels[seg.level] = true
				continue
			}
			if err := pick(seg, seg.terms, hashes, func(e *entries) { found(u, i, e) }); err != nil {
				return nil, damaged(u.key, err)
			}
		}
	}
	gone := make(map[*sessionUnit]bool)
	for level, any := range levels {
		for from := 0; any && from < len(hashes); {
			bucket := termBucket(uint8(level), hashes[from])
			to := from + 1
			for to < len(hashes) && termBucket(uint8(level), hashes[to]) == bucket {
				to++
			}
			missing, err := l.bucket(of, uint8(level), bucket, hashes[from:to], found)
			if err != nil {
				return nil, err
			}
			for u, n := range missing {
				gone[u] = gone[u] || n != 0
			}
			from = to
		}
	}
	for _, u := range units {
		if gone[u] {
			stale = append(stale, u)
		}
	}
	return stale, nil
}

// bucket reads one bucket of some sessions. It gives how many pages were
// missing of each.
func (l *look) bucket(of map[furl.SessionID]*sessionUnit, level uint8, bucket uint32, hashes []termHash, found func(*sessionUnit, int, *entries)) (map[*sessionUnit]int, error) {
	missing := make(map[*sessionUnit]int, len(of))
	key := furl.SessionKey{Tenant: l.req.Tenant}
	for _, u := range of {
		for _, seg := range u.segments {
			if !seg.packed && seg.level == level {
				missing[u]++
			}
		}
		if len(of) == 1 {
			key = u.key
		}
	}
	for p, err := range l.s.indexer.pages.Pages(l.ctx, key, bucket) {
		if err != nil {
			return nil, err
		}
		u := of[p.Session]
		if u == nil {
			continue
		}
		i, ok := u.number(furl.Seq(p.Segment))
		if !ok || u.segments[i].packed || u.segments[i].level != level {
			continue
		}
		payload, err := unseal(&p)
		if err == nil {
			err = pick(u.segments[i], payload, hashes, func(e *entries) {
				e.list.buf = slices.Clone(e.list.buf)
				found(u, i, e)
			})
		}
		if err != nil {
			return nil, damaged(u.key, err)
		}
		missing[u]--
	}
	return missing, nil
}

// pick finds terms in the entries of a segment.
func pick(seg *segment, buf []byte, hashes []termHash, found func(*entries)) error {
	e := entries{buf: buf, docs: uint64(seg.docs)}
	for at := 0; at < len(hashes) && e.next(); {
		for at < len(hashes) && hashes[at] < e.hash {
			at++
		}
		if at < len(hashes) && hashes[at] == e.hash {
			found(&e)
			at++
		}
	}
	return e.err
}

// Looking for a piece of a word in all sessions ends when it was found in so
// many documents, the session in which that happened done, or when so many
// vocabularies were read.
const (
	pieceDocs     = 256
	pieceSessions = 64
)

// containing gives the documents that have a term which contains a run, from
// the newest session to the oldest.
func (l *look) containing(run string) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		want := pattern(run)
		candidates, err := l.candidates(want)
		if err != nil {
			l.fail(err)
			return
		}
		total, looked := 0, 0
		for n := len(l.units) - 1; n >= 0; n-- {
			if !candidates[n] {
				continue
			}
			docs, err := l.unitContaining(n, want)
			if err != nil {
				l.fail(err)
				return
			}
			for doc := range docs {
				if !yield(n, doc) {
					return
				}
			}
			total, looked = total+len(docs), looked+1
			if l.req.Session == "" && (total >= pieceDocs || looked == pieceSessions) {
				return
			}
		}
	}
}

// candidates tells the units that may have a term which contains a pattern, by
// the signatures of their segments.
func (l *look) candidates(want string) (map[int]bool, error) {
	may := make(map[int]bool)
	fours := signaturesFor(want)
	if len(l.units) == 1 || len(fours) == 0 || l.s.indexer.pages == nil {
		for n := range l.units {
			may[n] = true
		}
		return may, nil
	}
	number := make(map[furl.SessionID]int, len(l.units))
	for n, u := range l.units {
		number[u.key.Session] = n
		if u.tail != nil && len(u.tail.docs) > 0 || slices.ContainsFunc(u.segments, func(seg *segment) bool { return seg.packed }) {
			may[n] = true
		}
	}
	type segmentKey struct {
		unit    int
		segment uint64
	}
	excluded := make(map[segmentKey]bool)
	for sig, known := range fours {
		for p, err := range l.s.indexer.pages.Pages(l.ctx, furl.SessionKey{Tenant: l.req.Tenant}, bucketSignature+sig) {
			if err != nil {
				return nil, err
			}
			n, ok := number[p.Session]
			if !ok || may[n] {
				continue
			}
			signature, err := unseal(&p)
			if err != nil {
				return nil, damaged(l.units[n].key, err)
			}
			if !mayContain(signature, known) {
				excluded[segmentKey{n, p.Segment}] = true
			}
		}
	}
	for n, u := range l.units {
		for _, seg := range u.segments {
			if !seg.packed && !excluded[segmentKey{n, uint64(seg.to)}] {
				may[n] = true
			}
		}
	}
	return may, nil
}

// unitContaining gives the documents of one session that have a term which
// contains a pattern.
func (l *look) unitContaining(n int, want string) (map[uint32]struct{}, error) {
	u := l.units[n]
	docs := make(map[uint32]struct{})
	if u.tail != nil {
		for doc := range u.tail.index.containing(want) {
			docs[uint32(u.bases[len(u.segments)])+doc] = struct{}{}
		}
	}
	hashes := make(map[termHash]struct{})
	use := func(_ *segment, lexicon []byte) error {
		r := lexiconReader{buf: lexicon}
		found, err := r.containing(want)
		for _, h := range found {
			hashes[h] = struct{}{}
		}
		return err
	}
	for _, seg := range u.segments {
		if seg.packed {
			if err := use(seg, seg.lexicon); err != nil {
				return nil, damaged(u.key, err)
			}
		}
	}
	if l.s.indexer.pages != nil {
		if err := part(l.ctx, l.s.indexer.pages, u.key, u.segments, bucketVocabulary, every, use); err != nil {
			return nil, err
		}
	}
	stale, err := l.lookUp([]*sessionUnit{u}, slices.Sorted(maps.Keys(hashes)), func(_ *sessionUnit, seg int, e *entries) {
		for doc := range e.list.each {
			docs[uint32(u.bases[seg])+doc] = struct{}{}
		}
	})
	if len(stale) > 0 {
		return nil, errStale
	}
	return docs, err
}
