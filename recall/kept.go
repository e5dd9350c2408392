package recall

import (
	"bytes"
	"sync"
	"time"

	"github.com/furlhq/furl"
)

// A merge needs the parts of the segments that were written last. Reading them is a query for
// each of their buckets, so an Indexer keeps those that it has written itself.

// origin tells which texts an index is made of: a session with the same id may be another one,
// and other processes may have redacted it. The zero value is unknown.
type origin struct {
	created    time.Time
	redactions int
}

// Limits of the segments that are kept, by the bytes of their parts. Larger ones are merged
// seldom.
const (
	maxKeptSegment = 512 << 10
	maxKept        = 8 << 20
)

// keptParts are the segments of the sessions that were indexed last.
type keptParts struct {
	mu       sync.Mutex
	sessions map[furl.SessionKey]keptSession
	size     int
	clock    uint64
}

type keptSession struct {
	origin
	segments []*segment // not packed, in order
	size     int
	used     uint64
}

// put keeps segments of a session in place of those before.
func (k *keptParts) put(key furl.SessionKey, from origin, segments []*segment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
	if from == (origin{}) {
		return
	}
	k.clock++
	s := keptSession{origin: from, used: k.clock}
	for _, seg := range segments {
		if n := seg.size(); seg.isRead && !seg.packed && n <= maxKeptSegment {
			s.segments = append(s.segments, seg)
			s.size += n
		}
	}
	if len(s.segments) == 0 {
		return
	}
	if k.sessions == nil {
		k.sessions = make(map[furl.SessionKey]keptSession)
	}
	k.sessions[key] = s
	k.size += s.size
	for k.size > maxKept {
		oldest, at := key, s.used
		for other, o := range k.sessions {
			if o.used < at {
				oldest, at = other, o.used
			}
		}
		k.drop(oldest)
	}
}

// drop forgets the segments of a session. k.mu is locked.
func (k *keptParts) drop(key furl.SessionKey) {
	k.size -= k.sessions[key].size
	delete(k.sessions, key)
}

// fill sets the parts of segments of which the heads were read, if they are kept.
func (k *keptParts) fill(key furl.SessionKey, from origin, segments []*segment) {
	k.mu.Lock()
	s := k.sessions[key]
	k.mu.Unlock()
	if from == (origin{}) || s.origin != from {
		return
	}
	for _, had := range s.segments {
		if i, ok := findSegment(segments, had.to); ok && bytes.Equal(segments[i].head, had.head) {
			segments[i] = had
		}
	}
}

// size returns about how many bytes a segment takes.
func (s *segment) size() int {
	return len(s.head) + len(s.documents) + len(s.terms) + len(s.vocabulary)
}
