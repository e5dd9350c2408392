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
)

// IndexerOptions are what an Indexer may be told.
type IndexerOptions struct {
	// Tenants are whose sessions Run keeps indexed, beside those that Touch
	// tells of. If nil, the one without a name.
	Tenants []furl.Tenant
	// Interval is how often Run asks the store for what was appended
	// without Touch, such as by another process. If zero, 10 s.
	Interval time.Duration
	// Gather is how long Run lets more come after it was told of something:
	// a step of indexing costs nearly the same for one record as for many,
	// and searches read what is not indexed yet. If zero, 2 s.
	Gather time.Duration
	// Log, if set, is told of damaged pages and of what stops Run for a
	// while.
	Log *slog.Logger
}

// Indexer keeps the search index of a store. It follows each session by a
// cursor: reads the records above it, cuts their texts into terms, and writes
// pages. A search needs no Indexer to be exact, as it reads above the cursor
// itself; it needs one to be fast.
//
// Any number of Indexers may work on one store, in any number of processes:
// what two did at once, one throws away. All pages can be dropped at any time.
type Indexer struct {
	store   furl.Store
	pages   furl.Searchable // nil if the store keeps none
	options IndexerOptions

	records furl.Seq // read in one step, at most
	bytes   int      // of their text; what is larger is a step of its own

	mu      sync.Mutex
	tenants map[furl.Tenant]bool
	wake    chan struct{}

	gaveUp     map[furl.Tenant]furl.SessionID // at which session, last
	complained time.Time                      // by Run, last
	withheld   int                            // complaints since
}

// NewIndexer returns an Indexer for a store. If the store is no
// furl.Searchable there is nothing to do, and all methods do it.
func NewIndexer(store furl.Store, o *IndexerOptions) *Indexer {
	x := &Indexer{store: store, records: batchRecords, bytes: batchBytes, wake: make(chan struct{}, 1), tenants: make(map[furl.Tenant]bool), gaveUp: make(map[furl.Tenant]furl.SessionID)}
	x.pages, _ = store.(furl.Searchable)
	if o != nil {
		x.options = *o
	}
	x.options.Interval = cmp.Or(x.options.Interval, 10*time.Second)
	x.options.Gather = cmp.Or(x.options.Gather, 2*time.Second)
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

// Touch tells that something was appended to a session of the tenant. It
// returns at once.
func (x *Indexer) Touch(tenant furl.Tenant) {
	x.mu.Lock()
	x.tenants[tenant] = true
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run indexes what is appended until ctx ends, whose error it returns. What
// goes wrong with a session is logged, and tried again at the next interval.
func (x *Indexer) Run(ctx context.Context) error {
	tick := time.NewTicker(x.options.Interval)
	defer tick.Stop()
	for {
		if x.pages != nil {
			for _, tenant := range x.known() {
				if err := x.CatchupTenant(ctx, tenant); err != nil && ctx.Err() == nil {
					x.complain(tenant, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-x.wake:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(x.options.Gather):
			}
		}
	}
}

func (x *Indexer) known() []furl.Tenant {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []furl.Tenant
	for t := range x.tenants {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// CatchupTenant indexes all of a tenant's sessions as they are when it looks.
// It goes on behind a session that cannot be indexed, unless there are so many
// in a row that it must be the store: then it gives up, and goes on from there
// when it is called next. The error names some of them, and says how many there
// are.
func (x *Indexer) CatchupTenant(ctx context.Context, tenant furl.Tenant) error {
	if x.pages == nil {
		return nil
	}
	var behind []furl.SessionKey
	for info, err := range x.pages.Behind(ctx, tenant) {
		if err != nil {
			return fmt.Errorf("list sessions to index: %w", err)
		}
		behind = append(behind, info.SessionKey)
	}
	var errs failures
	behind = x.goOn(tenant, behind)
	for i, key := range behind {
		err := x.Catchup(ctx, key)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, furl.ErrNoSession) { // deleted meanwhile
			err = nil
		}
		if errs.add(err); errs.row >= maxRow {
			errs.left = len(behind) - i - 1
			x.giveUp(key)
			break
		}
	}
	return errs.join()
}

// Catchup indexes a session up to its newest record. A session that does not
// exist is an error wrapping furl.ErrNoSession.
func (x *Indexer) Catchup(ctx context.Context, key furl.SessionKey) error {
	if x.pages == nil {
		return nil
	}
	lost, rebuilt := 0, false
	for {
		more, err := x.step(ctx, key)
		switch {
		case err == nil && !more:
			return nil
		case err == nil:
			lost = 0
		case (errors.Is(err, errStale) || errors.Is(err, furl.ErrConflict)) && lost < maxLost:
			lost++ // to another process, which has got further
		case errors.Is(err, errDamaged) && !rebuilt:
			rebuilt = true
			x.options.Log.Warn("rebuild a search index", "session", key.Session, "err", err)
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
	return x.pages.WriteIndex(ctx, key, furl.IndexWrite{DropAll: true})
}

// Bounds of what one step does and holds in memory. A record larger than that
// is a step of its own.
const (
	maxLost        = 10      // steps in a row that were for nothing
	batchRecords   = 4096    // records read in one step
	batchBytes     = 4 << 20 // of their text
	segmentDocs    = 1 << 16 // documents that a segment may get to by merging
	segmentLength  = 4 << 20 // terms of them
	mergeIfSmaller = 2       // times what comes behind it: then a segment is merged with it
)

// step indexes the next records and merges the newest segments with them, so
// that there are few of them, each larger than what comes behind it. more says
// that there may be more records.
func (x *Indexer) step(ctx context.Context, key furl.SessionKey) (more bool, err error) {
	cursor, err := x.pages.Indexed(ctx, key)
	if err != nil {
		return false, err
	}
	si := sessionIndex{key: key}
	all, err := heads(ctx, x.pages, key, nil)
	if err != nil {
		return false, err
	}
	if len(all) > 0 {
		si = all[0]
	}
	if si.covered() != cursor {
		if again, err := x.pages.Indexed(ctx, key); err != nil || again != cursor {
			return false, cmp.Or(err, errStale)
		}
		return false, &damage{key, fmt.Errorf("%w: pages up to record %d, the cursor at %d", errDamaged, si.covered(), cursor)}
	}
	b := batch{after: cursor, to: cursor}
	if n := len(si.segments); n > 0 {
		b.calls = si.segments[n-1].calls
	}
	for r, err := range x.store.Read(ctx, key, cursor) {
		if err != nil {
			return false, err
		}
		if b.add(&r); b.bytes >= x.bytes || b.to-b.after >= x.records {
			more = true
			break
		}
	}
	if b.to == b.after {
		return false, nil
	}
	write, err := x.write(ctx, &si, &b)
	if err != nil {
		return false, err
	}
	return more, x.pages.WriteIndex(ctx, key, write)
}

// write makes the pages of a batch and of the segments that are merged with
// it.
func (x *Indexer) write(ctx context.Context, si *sessionIndex, b *batch) (furl.IndexWrite, error) {
	w := furl.IndexWrite{After: b.after, To: b.to}
	seg := b.segment()
	docs, length := seg.docs, seg.length
	first := len(si.segments)
	for ; first > 0; first-- {
		s := si.segments[first-1]
		if s.length > mergeIfSmaller*length || s.docs+docs > segmentDocs || s.length+length > segmentLength {
			break
		}
		docs, length = docs+s.docs, length+s.length
	}
	if merged := si.segments[first:]; len(merged) > 0 {
		if err := load(ctx, x.pages, si.key, merged); err != nil {
			return w, err
		}
		for _, s := range merged {
			w.Drop = append(w.Drop, uint64(s.to))
		}
		var err error
		if seg, err = join(append(slices.Clip(merged), seg)); err != nil {
			return w, damaged(si.key, err)
		}
	}
	var err error
	w.Put, err = seg.pages(si.key)
	return w, damaged(si.key, err)
}
