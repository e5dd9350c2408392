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
	"github.com/furlhq/furl/storage"
)

// snapshot is what one search sees of the sessions in its scope.
type snapshot struct {
	ctx      context.Context
	searcher *Searcher
	req      *Request
	q        *query
	damage   damageCounts
	sessions []*sessionReader // as corpus.leaves
	corpus   corpus
	// copied has the last record that a fork has of its original. A search of all sessions
	// finds these records in the original only.
	copied map[furl.SessionID]furl.Seq

	// shared has the first sessions that sessions returned, with the same segments. It is
	// nil if some were read anew, and for a search of one session.
	shared *shared

	// infixTerms has, if there is one session in scope, the terms that contain a
	// pattern.
	infixTerms map[string][]termHash

	mu     sync.Mutex
	err    error // the first error of a callback of the ranking
	failed atomic.Bool
}

// sessionReader is one session of a snapshot: its segments, and the records after
// them.
type sessionReader struct {
	sessionSegments
	tail *memorySegment

	bases    []int // number of the first document of each segment and of the tail
	docs     int
	length   uint64
	newest   int64
	postings [][]postings // of each term of the query
	lengths  []docLength  // of the documents; read on first use
	fields   []document   // stored fields; read on first use
}

// Limits of the tail. If there are more records after the cursor, the search has
// them indexed first.
const (
	maxTailRecords = 1024
	maxTailBytes   = 1 << 20
)

// snapshot returns a snapshot of the sessions in scope with the postings of a
// query.
func (s *Searcher) snapshot(ctx context.Context, req *Request, q *query, damage damageCounts) (*snapshot, error) {
	snap := &snapshot{ctx: ctx, searcher: s, req: req, q: q, damage: damage}
	if req.Session == "" { // each term is a page of each session
		snap.corpus.wide, snap.corpus.ignored = true, q.stopWords()
	}
	sessions, shared, copied, err := s.sessions(ctx, furl.SessionKey{Tenant: req.Tenant, Session: req.Session}, damage)
	snap.shared, snap.copied = shared, copied
	if err != nil {
		return nil, err
	}
	if snap.sessions, err = snap.readPostings(sessions); err != nil {
		return nil, err
	}
	// From the oldest to the newest, by the times of the messages.
	slices.SortFunc(snap.sessions, func(a, b *sessionReader) int {
		return cmp.Or(cmp.Compare(a.newest, b.newest), strings.Compare(string(a.key.Session), string(b.key.Session)))
	})
	snap.corpus.leaves = make([]leaf, len(snap.sessions))
	for i, r := range snap.sessions {
		snap.corpus.docs += r.docs
		snap.corpus.length += r.length
		snap.corpus.leaves[i] = leaf{docs: r.docs, postings: r.postings, lengths: func() []docLength { return snap.lengths(r) }}
	}
	snap.corpus.infixDocs = snap.infixDocs
	if len(snap.sessions) == 1 {
		snap.corpus.prepareInfixes = snap.prepareInfixes
	}
	if snap.corpus.wide && req.Only == nil { // Only is not called concurrently
		snap.corpus.goroutines = maxRanking()
	}
	return snap, nil
}

// sessions returns the sessions in scope. If the first are those of a shared, with its
// segments and in its order, it returns that too. copied is as in snapshot.
func (s *Searcher) sessions(ctx context.Context, key furl.SessionKey, damage damageCounts) ([]*sessionReader, *shared, map[furl.SessionID]furl.Seq, error) {
	if key.Session != "" {
		r, err := s.session(ctx, key, damage)
		return []*sessionReader{r}, nil, nil, err
	}
	all, err := s.shared(ctx, key.Tenant, damage)
	if err != nil {
		return nil, nil, nil, err
	}
	copied := all.copied
	same := len(damage) == 0
	readers := make([]*sessionReader, len(all.sessions), len(all.sessions)+len(all.withTail))
	number := make(map[furl.SessionID]int, len(all.sessions))
	for i := range all.sessions {
		readers[i] = &sessionReader{sessionSegments: all.sessions[i]}
		number[all.sessions[i].key.Session] = i
	}
	put := func(r *sessionReader) {
		i, ok := number[r.key.Session]
		if !ok {
			number[r.key.Session] = len(readers)
			readers = append(readers, r)
			return
		}
		readers[i] = r
	}
	for key := range damage {
		if !damage.skipIndex(key) {
			continue
		}
		r, err := s.session(ctx, key, damage)
		if errors.Is(err, storage.ErrNoSession) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, nil, nil, err
		}
		put(r)
	}
	for _, key := range all.withTail {
		if damage.skipIndex(key) {
			continue
		}
		r := &sessionReader{sessionSegments: sessionSegments{key: key}}
		if i, ok := number[key.Session]; ok {
			r = readers[i]
		}
		more, err := s.readTail(ctx, r, maxTailRecords, maxTailBytes)
		if err == nil && more {
			same = false
			r, err = s.session(ctx, key, damage)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		put(r)
	}
	if !same {
		all = nil
	}
	return readers, all, copied, nil
}

// sessionsWithTail returns the sessions that have records after their cursor.
func (s *Searcher) sessionsWithTail(ctx context.Context, tenant furl.Tenant) ([]furl.SessionKey, error) {
	list := s.store.Sessions(ctx, tenant, storage.SessionQuery{})
	if s.indexer.pages != nil {
		list = s.indexer.pages.Unindexed(ctx, tenant)
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

// session returns one session. It indexes the session first if the tail is long,
// and reads a long tail only if that does not help.
func (s *Searcher) session(ctx context.Context, key furl.SessionKey, damage damageCounts) (*sessionReader, error) {
	indexed := damage.skipIndex(key)
	for {
		r := &sessionReader{sessionSegments: sessionSegments{key: key}}
		if s.indexer.pages != nil {
			all, err := readHeads(ctx, s.indexer.pages, key, damage)
			if err != nil {
				return nil, err
			}
			if len(all) > 0 {
				r.sessionSegments = all[0]
			}
		}
		more, err := s.readTail(ctx, r, maxTailRecords, maxTailBytes)
		if err != nil {
			return nil, err
		}
		if !more || indexed || s.indexer.pages == nil {
			if more {
				_, err = s.readTail(ctx, r, 1<<62, 1<<62)
			}
			return r, err
		}
		indexed = true
		if err := s.indexer.Catchup(ctx, key); err != nil {
			s.log.Warn("cannot index a session before a search", "session", key.Session, "err", err)
		}
	}
}

// readTail reads the records after the segments, up to so many records and bytes
// of text. more says that there are more.
func (s *Searcher) readTail(ctx context.Context, r *sessionReader, records furl.Seq, bytes int) (more bool, err error) {
	tail := &memorySegment{after: r.last(), to: r.last()}
	if n := len(r.segments); n > 0 {
		tail.calls.calls = slices.Clone(r.segments[n-1].calls.calls)
		tail.asked = r.segments[n-1].asked
	}
	r.tail = tail
	for rec, err := range s.store.Read(ctx, r.key, tail.after) {
		if err != nil {
			return false, err
		}
		if tail.to-tail.after >= records || tail.bytes >= bytes {
			return true, nil
		}
		tail.add(&rec)
	}
	return false, nil
}

// readPostings reads the postings of the query in these sessions. Sessions whose
// pages change meanwhile are read again, one by one.
func (snap *snapshot) readPostings(sessions []*sessionReader) ([]*sessionReader, error) {
	terms := make(map[termHash]int, len(snap.q.terms))
	for i := range snap.q.terms {
		if snap.corpus.ignored>>i&1 == 0 {
			t := snap.q.terms[i].term()
			terms[hashTerm(t.text, t.name)] = i
		}
	}
	hashes := slices.Sorted(maps.Keys(terms))
	read := func(sessions []*sessionReader, shared *shared) (stale []*sessionReader, err error) {
		for _, r := range sessions {
			r.reset(snap.q, snap.corpus.ignored)
		}
		use := func(f foundTerm) {
			r, i := sessions[f.session], terms[f.hash]
			f.list.base = uint32(r.bases[f.segment])
			r.postings[i] = append(r.postings[i], f.list)
		}
		if shared == nil {
			return snap.lookUp(sessions, hashes, maxReads, use)
		}
		others := shared.known(hashes, use)
		var found []foundTerm
		stale, err = snap.lookUp(sessions, others, maxReads, func(f foundTerm) {
			found = append(found, f)
			use(f)
		})
		if err == nil && len(stale) == 0 {
			shared.keep(others, found)
		}
		return stale, err
	}
	stale, err := read(sessions, snap.shared)
	if err != nil || len(sessions) == 1 && len(stale) > 0 {
		return nil, cmp.Or(err, errStale)
	}
	for _, old := range stale {
		sessions = slices.DeleteFunc(sessions, func(r *sessionReader) bool { return r == old })
		for tries := 0; ; tries++ {
			r, err := snap.searcher.session(snap.ctx, old.key, snap.damage)
			if errors.Is(err, storage.ErrNoSession) {
				break // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			again, err := read([]*sessionReader{r}, nil)
			if err != nil {
				return nil, err
			}
			if len(again) == 0 {
				sessions = append(sessions, r)
				break
			}
			if tries == maxStale {
				return nil, errStale
			}
		}
	}
	for _, r := range sessions {
		for _, lists := range r.postings {
			slices.SortFunc(lists, func(a, b postings) int { return cmp.Compare(a.base, b.base) })
		}
	}
	return sessions, nil
}

// reset sums up the segments and the tail, and sets the postings of a query to
// those of the tail.
func (r *sessionReader) reset(q *query, ignored uint64) {
	r.bases, r.docs, r.length, r.newest = r.bases[:0], 0, 0, 0
	for _, seg := range r.segments {
		r.bases = append(r.bases, r.docs)
		r.docs += seg.docs
		r.length += seg.length
		r.newest = max(r.newest, seg.newest)
	}
	r.bases = append(r.bases, r.docs)
	if r.tail == nil {
		r.postings = make([][]postings, len(q.terms))
		return
	}
	r.postings = r.tail.index.leaf(q).postings
	for n, lists := range r.postings {
		if ignored>>n&1 != 0 {
			r.postings[n] = nil
		}
		for i := range lists {
			lists[i].base = uint32(r.docs)
		}
	}
	r.docs += len(r.tail.docs)
	r.length += r.tail.index.length
	for i := range r.tail.docs {
		r.newest = max(r.newest, r.tail.docs[i].at)
	}
}

// fail keeps the first error of a callback of the ranking.
func (snap *snapshot) fail(err error) {
	snap.mu.Lock()
	defer snap.mu.Unlock()
	if snap.err == nil {
		snap.err = err
		snap.failed.Store(true)
	}
}

// lengths returns the lengths of the documents of a session.
func (snap *snapshot) lengths(r *sessionReader) []docLength {
	if r.lengths == nil {
		r.lengths = make([]docLength, 0, r.docs)
		for _, seg := range r.segments {
			lengths, err := seg.appendLengths(r.lengths)
			if err != nil {
				snap.fail(damaged(r.key, err))
				lengths = append(r.lengths, make([]docLength, seg.docs)...)
			}
			r.lengths = lengths
		}
		if r.tail != nil {
			r.lengths = append(r.lengths, r.tail.index.lengths...)
		}
	}
	return r.lengths
}

// fields returns the stored fields of the documents of a session.
func (snap *snapshot) fields(r *sessionReader) ([]document, error) {
	if r.fields != nil || r.docs == 0 {
		return r.fields, nil
	}
	docs := make([]document, r.docs)
	put := func(seg *segment, payload []byte) error {
		d, err := decodeDocuments(payload, seg.docs)
		i, _ := findSegment(r.segments, seg.to)
		copy(docs[r.bases[i]:], d)
		return err
	}
	for _, seg := range r.segments {
		if seg.packed {
			if err := put(seg, seg.documents); err != nil {
				return nil, damaged(r.key, err)
			}
		}
	}
	if pages := snap.searcher.indexer.pages; pages != nil {
		if err := readPart(snap.ctx, pages, r.key, r.segments, bucketDocuments, everySegment, put); err != nil {
			return nil, err
		}
	}
	if r.tail != nil {
		copy(docs[r.bases[len(r.segments)]:], r.tail.docs)
	}
	r.fields = docs
	return docs, nil
}

// selects reports whether a document passes the filters of the request.
func (snap *snapshot) selects(leaf int, doc uint32) bool {
	if snap.failed.Load() {
		return false
	}
	r := snap.sessions[leaf]
	copied := snap.copied[r.key.Session]
	if !snap.req.hasFilter() && copied == 0 {
		return true
	}
	docs, err := snap.fields(r)
	if err != nil {
		snap.fail(err)
		return false
	}
	return docs[doc].pos.Msg > copied && snap.req.selects(r.key.Session, &docs[doc])
}

// hits returns documents with their stored fields.
func (snap *snapshot) hits(top []scoredDoc) ([]Hit, error) {
	var leaves []int
	for _, d := range top {
		leaves = append(leaves, d.leaf)
	}
	slices.Sort(leaves)
	leaves = slices.Compact(leaves)
	errs := make([]error, len(leaves))
	parallel(len(leaves), maxReads, func(i int) { _, errs[i] = snap.fields(snap.sessions[leaves[i]]) })
	if err := firstError(errs); err != nil {
		return nil, err
	}
	hits := make([]Hit, len(top))
	for i, d := range top {
		hits[i] = snap.hit(d.docID)
		hits[i].Score, hits[i].Exact = d.score, d.exact
		hits[i].Matched = snap.q.matched(d.terms, d.infixes)
	}
	return hits, nil
}

// hit returns a document whose stored fields were read.
func (snap *snapshot) hit(id docID) Hit {
	r := snap.sessions[id.leaf]
	d := &r.fields[id.doc]
	return Hit{Session: r.key.Session, Pos: d.pos, Role: d.role, Kind: d.kind, Tool: d.tool, At: fromMillis(d.at), Error: d.error}
}
