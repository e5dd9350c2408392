package recall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// errStale says that the pages of a session changed while they were read. The
// read should be repeated.
var errStale = errors.New("search index changed during the search")

// sessionSegments are the segments of one session, in order.
type sessionSegments struct {
	key      furl.SessionKey
	segments []*segment
}

// last returns the last record that is in the segments.
func (s *sessionSegments) last() furl.Seq {
	if len(s.segments) == 0 {
		return 0
	}
	return s.segments[len(s.segments)-1].to
}

// findSegment returns the index of a segment.
func findSegment(segments []*segment, to furl.Seq) (int, bool) {
	return slices.BinarySearchFunc(segments, to, func(s *segment, to furl.Seq) int { return cmp.Compare(s.to, to) })
}

// readHeads returns the segments of a session; if the key has no session, those
// of each session of the tenant. It leaves out sessions that the search reads
// without their index.
func readHeads(ctx context.Context, store storage.Searchable, key furl.SessionKey, damage damageCounts) ([]sessionSegments, error) {
	var all []sessionSegments
	for p, err := range store.Pages(ctx, key, bucketHead) {
		if err != nil {
			return nil, err
		}
		pageKey := furl.SessionKey{Tenant: key.Tenant, Session: p.Session}
		if damage.skipIndex(pageKey) {
			continue
		}
		payload, err := pagePayload(&p)
		if err != nil {
			return nil, damaged(pageKey, err)
		}
		seg, err := decodeHead(bytes.Clone(payload), p.Segment)
		if err != nil {
			return nil, damaged(pageKey, err)
		}
		if n := len(all); n == 0 || all[n-1].key != pageKey {
			all = append(all, sessionSegments{key: pageKey})
		}
		s := &all[len(all)-1]
		if seg.after != s.last() {
			return nil, damaged(pageKey, fmt.Errorf("%w: segment %d does not follow segment %d", errDamaged, seg.to, s.last()))
		}
		s.segments = append(s.segments, seg)
	}
	return all, nil
}

// readPart calls use with the pages that segments have in a bucket, of those
// segments that are not packed and for which want is true. All of these pages must
// exist.
func readPart(ctx context.Context, store storage.Searchable, key furl.SessionKey, segments []*segment, bucket uint32, want func(*segment) bool, use func(*segment, []byte) error) error {
	missing := 0
	for _, seg := range segments {
		if !seg.packed && want(seg) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	for p, err := range store.Pages(ctx, key, bucket) {
		if err != nil {
			return err
		}
		n, ok := findSegment(segments, furl.Seq(p.Segment))
		if !ok || segments[n].packed || !want(segments[n]) {
			continue
		}
		payload, err := pagePayload(&p)
		if err == nil {
			err = use(segments[n], payload)
		}
		if err != nil {
			return damaged(key, err)
		}
		missing--
	}
	if missing != 0 {
		return errStale
	}
	return nil
}

func everySegment(*segment) bool { return true }

// readSegments reads the parts of segments of which only the heads were read.
func readSegments(ctx context.Context, store storage.Searchable, key furl.SessionKey, segments []*segment) error {
	unread := func(seg *segment) bool { return !seg.isRead }
	err := readPart(ctx, store, key, segments, bucketDocuments, unread, func(seg *segment, payload []byte) error {
		seg.documents = bytes.Clone(payload)
		return nil
	})
	if err != nil {
		return err
	}
	err = readPart(ctx, store, key, segments, bucketVocabulary, unread, func(seg *segment, payload []byte) error {
		seg.vocabulary = bytes.Clone(payload)
		return nil
	})
	if err != nil {
		return err
	}
	writers := make(map[*segment]*termWriter)
	for level := range uint8(maxLevel + 1) {
		ofLevel := func(seg *segment) bool { return seg.level == level && unread(seg) }
		if !slices.ContainsFunc(segments, func(seg *segment) bool { return !seg.packed && ofLevel(seg) }) {
			continue
		}
		for bucket := firstTermBucket(level); bucket < firstTermBucket(level+1); bucket++ {
			err := readPart(ctx, store, key, segments, bucket, ofLevel, func(seg *segment, payload []byte) error {
				w := writers[seg]
				if w == nil {
					w = &termWriter{}
					writers[seg] = w
				}
				t := newTermReader(payload, level, bucket, seg.docs)
				for t.next() {
					w.add(t.hash, t.list.buf)
				}
				return t.err
			})
			if err != nil {
				return err
			}
		}
	}
	for seg, w := range writers {
		seg.terms = w.flush(nil)
	}
	return nil
}
