package web

import (
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/session"
)

// snapshot is the page's own copy of a session's log. It shares the messages with the
// session, and is extended by new records. So pages fold and render without locking the
// session, whose requests would wait otherwise.
type snapshot struct {
	mu  sync.Mutex
	key furl.SessionKey
	// of is the session in memory that the log was read from. Another one of the same key
	// may have other records, because the session was deleted and made again.
	of  weak.Pointer[session.Session]
	log *furl.Log
	// folded are the newest states of earlier requests, most recently used first.
	folded []*furl.State

	requests requestList

	used  uint64 // guarded by snapshots.mu, and so is bytes
	bytes int64  // estimated memory of the messages
}

// maxFolded is the number of earlier states that a snapshot keeps.
const maxFolded = 4

// snapshots are the snapshots that were used last.
type snapshots struct {
	mu   sync.Mutex
	by   map[furl.SessionKey]*snapshot
	uses uint64
}

// Bounds on the snapshots in memory. The messages of a snapshot stay in memory when its
// session no longer is, so their size is limited too. The snapshot in use always stays.
const (
	maxSnapshots     = 16
	maxSnapshotBytes = 128 << 20
)

func newSnapshots() *snapshots { return &snapshots{by: make(map[furl.SessionKey]*snapshot)} }

// of returns the snapshot of a session of an estimated size, and drops those that were not
// used for the longest time if there are too many.
func (c *snapshots) of(key furl.SessionKey, bytes int64) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	s := c.by[key]
	if s == nil {
		s = &snapshot{key: key, log: furl.NewLog()}
		c.by[key] = s
	}
	s.used, s.bytes = c.uses, bytes
	var sum int64
	for _, other := range c.by {
		sum += other.bytes
	}
	for len(c.by) > 1 && (len(c.by) > maxSnapshots || sum > maxSnapshotBytes) {
		oldest := s
		for _, other := range c.by {
			if other.used < oldest.used {
				oldest = other
			}
		}
		delete(c.by, oldest.key)
		sum -= oldest.bytes
	}
	return s
}

// forget drops the snapshot of a session.
func (c *snapshots) forget(key furl.SessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, key)
}

// snapshot returns the snapshot of the visit's session.
func (v *visit) snapshot() *snapshot {
	info := v.s.Info()
	return v.p.cache.of(info.SessionKey, membudget.Session(info.Bytes, int64(info.Records)))
}

// read brings the snapshot of the visit's session up to date and calls f with it. The
// snapshot and all states of it are valid only within f.
func (v *visit) read(f func(*snapshot) error) error {
	snap := v.snapshot()
	if v.namesRequest() {
		if err := v.listRequestsOf(snap); err != nil {
			return err
		}
	}
	snap.mu.Lock()
	defer snap.mu.Unlock()
	if err := snap.update(v.s); err != nil {
		return err
	}
	return f(snap)
}

// readRequests is read with the requests of the current path, which moments have then.
// They are computed before the snapshot is locked, because that takes seconds for a long
// session, and other parts of the page do not need them.
func (v *visit) readRequests(f func(*snapshot) error) error {
	if err := v.listRequestsOf(v.snapshot()); err != nil {
		return err
	}
	return v.read(f)
}

// listRequestsOf sets the requests of the visit, once.
func (v *visit) listRequestsOf(snap *snapshot) (err error) {
	if !v.hasRequests {
		v.requests, err = snap.listRequests(v.s)
		v.hasRequests = err == nil
	}
	return err
}

// update adds the records that the snapshot does not have.
func (n *snapshot) update(s *session.Session) error {
	if n.of.Value() != s {
		n.log, n.folded, n.of = furl.NewLog(), nil, weak.Make(s)
	}
	fresh := s.Records(furl.Seq(n.log.Len()))
	if len(fresh) == 0 {
		return nil
	}
	if err := n.log.Load(fresh); err != nil {
		n.log, n.folded = furl.NewLog(), nil
		return fmt.Errorf("read session %s: %w", s.ID(), err)
	}
	return nil
}

// requestList are the requests of the current path of a snapshot. It has a lock of its own.
type requestList struct {
	mu       sync.Mutex
	log      *furl.Log // that history has read
	history  *session.History
	settings string // that history was made for
	records  int
	head     furl.Seq
	list     []session.Request
}

// listRequests returns the requests of the current path. It costs what is new since the
// last call, unless the settings have changed. The snapshot must not be locked.
func (n *snapshot) listRequests(s *session.Session) ([]session.Request, error) {
	q := &n.requests
	q.mu.Lock()
	defer q.mu.Unlock()
	n.mu.Lock()
	err := n.update(s)
	log, records, head := n.log, n.log.Records(0), n.log.Head()
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	meta := s.Meta()
	if settings := fmt.Sprint(meta.Policy, meta.Settings, meta.Model); q.history == nil || q.settings != settings || q.log != log {
		q.history, q.settings, q.log, q.records = session.NewHistory(s.HistoryOptions()), settings, log, -1
	}
	if q.records == len(records) && q.head == head {
		return q.list, nil
	}
	if _, err := q.history.Extend(records, head); err != nil {
		q.history = nil
		return nil, fmt.Errorf("read requests of session %s: %w", s.ID(), err)
	}
	q.list, q.records, q.head = slices.Clone(q.history.Requests()), len(records), head
	return q.list, nil
}

// stateAt returns the state of the path that ends at a record.
func (n *snapshot) stateAt(head furl.Seq) (*furl.State, error) {
	if head == n.log.Head() {
		return n.log.State(), nil
	}
	for i, st := range n.folded {
		if st.Head() == head {
			copy(n.folded[1:i+1], n.folded[:i])
			n.folded[0] = st
			return st, nil
		}
	}
	st, err := furl.Fold(n.log, head)
	if err != nil {
		return nil, err
	}
	n.folded = append([]*furl.State{st}, n.folded[:min(len(n.folded), maxFolded-1)]...)
	return st, nil
}
