package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// IndexerOptions are the options of an Indexer.
type IndexerOptions struct {
	// Tenants are the tenants whose sessions Run indexes, in addition to those
	// passed to Touch. If nil, the tenant "".
	Tenants []furl.Tenant
	// Interval is how often Run looks for records that were appended without
	// Touch, for example by another process. That may read all sessions of the
	// store, and each process does it. If zero, one minute.
	Interval time.Duration
	// Gather is how long Run waits for more records after a Touch, and four times as
	// long while they have less than 16 KB: a write costs nearly the same for one
	// record as for many, and searches read records that are not indexed yet. If
	// zero, DefaultGather.
	Gather time.Duration
	// Log, if set, gets damaged pages and errors of Run.
	Log *slog.Logger
}

// DefaultGather is the default of IndexerOptions.Gather.
const DefaultGather = 5 * time.Second

// A session with fewer new bytes than gatherBytes waits gatherTimes as long.
const (
	gatherBytes = 16 << 10
	gatherTimes = 4
)

// Indexer keeps the search index of a store up to date. Each session has a
// cursor: an Indexer reads the records after it, analyzes their texts, and writes
// pages. Searches do not depend on it, because they read the records after the
// cursor themselves, but it makes them fast.
//
// Any number of Indexers may work on one store, in any number of processes. If two
// index the same records, one discards its work. All pages can be dropped at any
// time.
type Indexer struct {
	store   storage.Store
	pages   storage.Searchable // nil if the store keeps none
	options IndexerOptions

	maxRecords furl.Seq // of one write
	maxBytes   int      // of their text; a larger record is written alone

	mu      sync.Mutex
	tenants map[furl.Tenant]bool
	touched map[furl.SessionKey]touched // and not indexed since; see Touch
	wake    chan struct{}

	busy map[furl.SessionKey]int // how often Run has left a session to another process

	kept keptParts // of segments that this Indexer has written

	upgraded map[furl.Tenant]bool           // whose indexes all have this version
	gaveUp   map[furl.Tenant]furl.SessionID // session at which CatchupTenant stopped
	logged   time.Time                      // when Run last logged an error
	withheld int                            // errors since then that it did not log
}

// NewIndexer returns an Indexer for a store. If the store is not a
// storage.Searchable, its methods do nothing.
func NewIndexer(store storage.Store, o *IndexerOptions) *Indexer {
	x := &Indexer{store: store, maxRecords: maxWriteRecords, maxBytes: maxWriteBytes, wake: make(chan struct{}, 1), tenants: make(map[furl.Tenant]bool), touched: make(map[furl.SessionKey]touched), busy: make(map[furl.SessionKey]int), gaveUp: make(map[furl.Tenant]furl.SessionID), upgraded: make(map[furl.Tenant]bool)}
	x.pages, _ = store.(storage.Searchable)
	if o != nil {
		x.options = *o
	}
	x.options.Interval = cmp.Or(x.options.Interval, time.Minute)
	x.options.Gather = cmp.Or(x.options.Gather, DefaultGather)
	if x.options.Log == nil {
		x.options.Log = slog.New(slog.DiscardHandler)
	}
	if x.options.Tenants == nil {
		x.tenants[""] = true
	}
	for _, t := range x.options.Tenants {
		x.tenants[t] = true
	}
	return x
}

// touched is a session that this process has extended.
type touched struct {
	last  furl.Seq // that this process has appended
	bytes int      // of the messages
	since time.Time
}

// Touch tells Run that this process has appended records to a session, up to last, with so
// many bytes of messages. Run indexes the session soon, unless another process has appended
// further records by then: that one does it, so that a session that moves between processes
// is indexed once. Touch does not wait.
func (x *Indexer) Touch(key furl.SessionKey, last furl.Seq, bytes int) {
	x.mu.Lock()
	x.tenants[key.Tenant] = true
	t, waits := x.touched[key]
	if !waits {
		t.since = time.Now()
	}
	t.last, t.bytes = last, t.bytes+bytes
	x.touched[key] = t
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run indexes sessions as they grow, until ctx ends; it returns the error of ctx.
// A session that cannot be indexed is logged and tried again after the interval.
func (x *Indexer) Run(ctx context.Context) error {
	next := time.Now() // when all sessions are looked through
	for {
		waits := x.options.Interval // for touched sessions
		if x.pages != nil {
			var list []touchedSession
			list, waits = x.takeTouched(time.Now())
			x.indexTouched(ctx, list)
			if !time.Now().Before(next) {
				began := time.Now()
				for _, tenant := range x.knownTenants() {
					if err := x.catchupTenant(ctx, tenant, x.isBusy); err != nil && ctx.Err() == nil {
						x.logError(tenant, err)
					}
				}
				next = time.Now().Add(x.pause(x.options.Interval, time.Since(began)))
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Until(next), waits)):
		case <-x.wake:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(x.options.Gather):
			}
		}
	}
}

// pause returns how long to wait after all sessions were looked through. That may read
// all sessions of the store, so it takes at most a tenth of the time.
func (x *Indexer) pause(interval, took time.Duration) time.Duration { return max(interval, 10*took) }

// maxBusy is how often in a row Run leaves a session to another process, which may have no
// Indexer.
const maxBusy = 6

// isBusy reports whether a session is being extended, so that the process that does it will
// index it. Run finds the session again after the interval.
func (x *Indexer) isBusy(info *storage.SessionInfo) bool {
	if age := time.Since(info.Updated); age < 0 || age > x.options.Interval/2 || x.busy[info.SessionKey] >= maxBusy {
		delete(x.busy, info.SessionKey)
		return false
	}
	if len(x.busy) >= maxBusySessions {
		clear(x.busy)
	}
	x.busy[info.SessionKey]++
	return true
}

// maxBusySessions is the largest number of sessions in Indexer.busy.
const maxBusySessions = 10_000

// touchedSession is a session with the last record that this process has appended.
type touchedSession struct {
	key  furl.SessionKey
	last furl.Seq
}

// takeTouched returns the touched sessions that have waited long enough, in order, and
// forgets them. rest is how long the next of the others waits at most.
func (x *Indexer) takeTouched(now time.Time) (list []touchedSession, rest time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	rest = x.options.Interval
	for key, t := range x.touched {
		longest := gatherTimes*x.options.Gather - now.Sub(t.since)
		if t.bytes < gatherBytes && longest > 0 {
			rest = min(rest, longest)
			continue
		}
		list = append(list, touchedSession{key, t.last})
		delete(x.touched, key)
	}
	slices.SortFunc(list, func(a, b touchedSession) int {
		return cmp.Or(cmp.Compare(a.key.Tenant, b.key.Tenant), cmp.Compare(a.key.Session, b.key.Session))
	})
	return list, rest
}

// indexTouched indexes sessions that this process has extended, without looking through
// all sessions of the store. What fails is tried again after the interval.
func (x *Indexer) indexTouched(ctx context.Context, list []touchedSession) {
	for _, t := range list {
		key := t.key
		extended, from, err := x.isExtended(ctx, t)
		if extended {
			continue
		}
		if err == nil {
			err = x.upgrade(ctx, key.Tenant)
		}
		if err == nil {
			err = x.catchup(ctx, key, from)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, storage.ErrNoSession) {
			x.logError(key.Tenant, err)
		}
	}
}

// isExtended reports whether another process has appended to a touched session. If not,
// origin tells which texts its index is made of.
func (x *Indexer) isExtended(ctx context.Context, t touchedSession) (extended bool, from origin, err error) {
	info, err := storage.Info(ctx, x.store, t.key)
	if errors.Is(err, storage.ErrNoSession) { // deleted
		return false, origin{}, nil
	}
	return info.Records > t.last, origin{info.Created, len(info.Redactions)}, err
}

func (x *Indexer) knownTenants() []furl.Tenant {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []furl.Tenant
	for t := range x.tenants {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// CatchupTenant indexes all sessions of a tenant up to their newest records. It
// skips sessions that cannot be indexed. After 8 failures in a row, which point
// to the store, it stops; the next call starts after that session. The error
// names some of the sessions and the number of the others.
func (x *Indexer) CatchupTenant(ctx context.Context, tenant furl.Tenant) error {
	return x.catchupTenant(ctx, tenant, func(*storage.SessionInfo) bool { return false })
}

// catchupTenant is CatchupTenant for the sessions for which skip is false.
func (x *Indexer) catchupTenant(ctx context.Context, tenant furl.Tenant, skip func(*storage.SessionInfo) bool) error {
	if x.pages == nil {
		return nil
	}
	if err := x.upgrade(ctx, tenant); err != nil {
		return err
	}
	var stale []furl.SessionKey
	for info, err := range x.pages.Unindexed(ctx, tenant) {
		if err != nil {
			return fmt.Errorf("list sessions to index: %w", err)
		}
		if !skip(&info) {
			stale = append(stale, info.SessionKey)
		}
	}
	var errs sessionErrors
	stale = x.resume(tenant, stale)
	for i, key := range stale {
		err := x.Catchup(ctx, key)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, storage.ErrNoSession) { // deleted meanwhile
			err = nil
		}
		if errs.add(err); errs.inRow >= maxFailuresInRow {
			errs.skipped = len(stale) - i - 1
			x.stopAt(key)
			break
		}
	}
	return errs.join()
}

// upgrade rebuilds the indexes of a tenant that another version of furl wrote, once.
func (x *Indexer) upgrade(ctx context.Context, tenant furl.Tenant) error {
	x.mu.Lock()
	done := x.upgraded[tenant]
	x.mu.Unlock()
	if done {
		return nil
	}
	failed, err := x.rebuildOld(ctx, furl.SessionKey{Tenant: tenant})
	if err != nil {
		return fmt.Errorf("rebuild indexes of another version: %w", err)
	}
	for key, err := range failed {
		x.options.Log.Warn("cannot rebuild a search index of another version", "session", key.Session, "err", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.upgraded[tenant] = true
	return nil
}

// rebuildOld rebuilds the indexes of another version of one session, or of all
// sessions of a tenant. It returns the errors of sessions that it could not rebuild.
func (x *Indexer) rebuildOld(ctx context.Context, key furl.SessionKey) (failed map[furl.SessionKey]error, err error) {
	var old []furl.SessionKey
	for p, err := range x.pages.Pages(ctx, key, bucketHead) {
		if err != nil {
			return nil, err
		}
		session := furl.SessionKey{Tenant: key.Tenant, Session: p.Session}
		if _, err := pagePayload(&p); errors.Is(err, errVersion) && (len(old) == 0 || old[len(old)-1] != session) {
			old = append(old, session)
		}
	}
	if len(old) > 0 {
		x.options.Log.Info("rebuilding search indexes of another version", "sessions", len(old))
	}
	failed = make(map[furl.SessionKey]error)
	for _, session := range old {
		if ctx.Err() != nil {
			return failed, ctx.Err()
		}
		if err := x.Rebuild(ctx, session); err != nil && !errors.Is(err, storage.ErrNoSession) {
			failed[session] = err
		}
	}
	return failed, nil
}

// Catchup indexes a session up to its newest record. A session that does not
// exist is an error wrapping storage.ErrNoSession.
func (x *Indexer) Catchup(ctx context.Context, key furl.SessionKey) error {
	return x.catchup(ctx, key, origin{})
}

// catchup is Catchup for a session of which the caller knows the origin; zero: it does not.
func (x *Indexer) catchup(ctx context.Context, key furl.SessionKey, from origin) error {
	if x.pages == nil {
		return nil
	}
	conflicts, rebuilt := 0, false
	for {
		more, err := x.indexNext(ctx, key, from)
		switch {
		case err == nil && !more:
			return nil
		case err == nil:
			conflicts = 0
		case (errors.Is(err, errStale) || errors.Is(err, furl.ErrConflict)) && conflicts < maxConflicts:
			conflicts++ // another process has indexed these records
		case errors.Is(err, errDamaged) && !rebuilt:
			rebuilt = true
			x.options.Log.Warn("rebuilding a search index", "session", key.Session, "err", err)
			if err := x.drop(ctx, key); err != nil {
				return fmt.Errorf("index session %s: %w", key.Session, err)
			}
		default:
			return fmt.Errorf("index session %s: %w", key.Session, err)
		}
	}
}

// Rebuild drops the pages of a session and makes them again.
func (x *Indexer) Rebuild(ctx context.Context, key furl.SessionKey) error {
	if x.pages == nil {
		return nil
	}
	if err := x.drop(ctx, key); err != nil {
		return fmt.Errorf("drop index of session %s: %w", key.Session, err)
	}
	return x.Catchup(ctx, key)
}

func (x *Indexer) drop(ctx context.Context, key furl.SessionKey) error {
	return x.pages.WriteIndex(ctx, key, storage.IndexWrite{DropAll: true})
}

// Limits of one write and of merging.
const (
	maxConflicts    = 10      // conflicts in a row before Catchup fails
	maxWriteRecords = 4096    // new records
	maxWriteBytes   = 4 << 20 // their text
	maxMergedDocs   = 1 << 16 // documents of a merged segment
	maxMergedLength = 4 << 20 // tokens of a merged segment
)

// mergeFactor decides which segments are merged with new records: the newest, as
// long as each has at most so many times the length of all that follow it. So
// there are few segments, each longer than the next.
const mergeFactor = 2

// indexNext indexes the next records of a session in one write. more says that
// there may be more records.
func (x *Indexer) indexNext(ctx context.Context, key furl.SessionKey, from origin) (more bool, err error) {
	cursor, err := x.pages.Indexed(ctx, key)
	if err != nil {
		return false, err
	}
	old := sessionSegments{key: key}
	all, err := readHeads(ctx, x.pages, key, nil)
	if err != nil {
		return false, err
	}
	if len(all) > 0 {
		old = all[0]
	}
	if old.last() != cursor {
		if again, err := x.pages.Indexed(ctx, key); err != nil || again != cursor {
			return false, cmp.Or(err, errStale)
		}
		return false, &damageError{key, fmt.Errorf("%w: pages up to record %d, but the cursor is at %d", errDamaged, old.last(), cursor)}
	}
	s := takeMemorySegment()
	defer s.giveBack()
	s.after, s.to = cursor, cursor
	if n := len(old.segments); n > 0 {
		s.calls.calls, s.asked = slices.Clone(old.segments[n-1].calls.calls), old.segments[n-1].asked
	}
	for r, err := range x.store.Read(ctx, key, cursor) {
		if err != nil {
			return false, err
		}
		if s.add(&r); s.bytes >= x.maxBytes || s.to-s.after >= x.maxRecords {
			more = true
			break
		}
	}
	if s.to == s.after {
		return false, nil
	}
	write, segments, err := x.indexWrite(ctx, &old, s, from)
	if err == nil {
		err = x.pages.WriteIndex(ctx, key, write)
	}
	if err != nil {
		return false, err
	}
	x.kept.put(key, from, segments)
	return more, nil
}

// indexWrite returns the write that adds a segment to those of a session, merged
// with the newest of them, and the segments after it.
func (x *Indexer) indexWrite(ctx context.Context, old *sessionSegments, s *memorySegment, from origin) (storage.IndexWrite, []*segment, error) {
	w := storage.IndexWrite{After: s.after, To: s.to}
	seg := s.encode()
	left := mergeFrom(old.segments, seg)
	x.kept.fill(old.key, from, old.segments)
	if merged := old.segments[left:]; len(merged) > 0 {
		if err := readSegments(ctx, x.pages, old.key, merged); err != nil {
			return w, nil, err
		}
		for _, m := range merged {
			w.Drop = append(w.Drop, uint64(m.to))
		}
		var err error
		if seg, err = mergeSegments(append(slices.Clip(merged), seg)); err != nil {
			return w, nil, damaged(old.key, err)
		}
	}
	var err error
	w.Put, err = seg.encode(old.key)
	return w, append(slices.Clip(old.segments[:left]), seg), damaged(old.key, err)
}

// mergeFrom returns the index of the first segment that is merged with a new one.
func mergeFrom(segments []*segment, seg *segment) int {
	docs, length := seg.docs, seg.length
	first := len(segments)
	for ; first > 0; first-- {
		s := segments[first-1]
		if s.length > mergeFactor*length || s.docs+docs > maxMergedDocs || s.length+length > maxMergedLength {
			break
		}
		docs, length = docs+s.docs, length+s.length
	}
	return first
}
