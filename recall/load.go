package recall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// errStale says that the pages of a session changed between two looks at
// them: look again.
var errStale = errors.New("the index has changed meanwhile")

// damage says which session's pages are not what was written.
type damage struct {
	key furl.SessionKey
	err error
}

func (d *damage) Error() string {
	return fmt.Sprintf("search index of session %s: %v", d.key.Session, d.err)
}

func (d *damage) Unwrap() error { return d.err }

// damaged says whose pages an error is about, if it is about their content.
func damaged(key furl.SessionKey, err error) error {
	if errors.Is(err, errDamaged) {
		return &damage{key, err}
	}
	return err
}

// heads gives the segments of a session, or of each of the tenant's that has
// any if the key has none, in order; not of those whose pages a search does
// without.
func heads(ctx context.Context, s furl.Searchable, key furl.SessionKey, seen damages) ([]sessionIndex, error) {
	var all []sessionIndex
	for p, err := range s.Pages(ctx, key, bucketHead) {
		if err != nil {
			return nil, err
		}
		of := furl.SessionKey{Tenant: key.Tenant, Session: p.Session}
		if seen.without(of) {
			continue
		}
		payload, err := unseal(&p)
		if err != nil {
			return nil, damaged(of, err)
		}
		seg, err := readHead(bytes.Clone(payload), p.Segment)
		if err != nil {
			return nil, damaged(of, err)
		}
		if n := len(all); n == 0 || all[n-1].key != of {
			all = append(all, sessionIndex{key: of})
		}
		si := &all[len(all)-1]
		if seg.after != si.covered() {
			return nil, damaged(of, fmt.Errorf("%w: segments %d and %d do not fit together", errDamaged, si.covered(), seg.to))
		}
		si.segments = append(si.segments, seg)
	}
	return all, nil
}

// sessionIndex is what the pages say about one session.
type sessionIndex struct {
	key      furl.SessionKey
	segments []*segment
}

// covered is the last record the pages speak of.
func (si *sessionIndex) covered() furl.Seq {
	if len(si.segments) == 0 {
		return 0
	}
	return si.segments[len(si.segments)-1].to
}

// part reads the pages of a bucket of those segments that keep it in a page
// of its own and for which want holds, all of which must be there.
func part(ctx context.Context, s furl.Searchable, key furl.SessionKey, segments []*segment, bucket uint32, want func(*segment) bool, use func(*segment, []byte) error) error {
	missing := 0
	for _, seg := range segments {
		if !seg.packed && want(seg) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	for p, err := range s.Pages(ctx, key, bucket) {
		if err != nil {
			return err
		}
		n, ok := slices.BinarySearchFunc(segments, furl.Seq(p.Segment), func(seg *segment, to furl.Seq) int { return cmp.Compare(seg.to, to) })
		if !ok || segments[n].packed || !want(segments[n]) {
			continue
		}
		payload, err := unseal(&p)
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

func every(*segment) bool { return true }

// load reads the parts of segments that only their heads are known of.
func load(ctx context.Context, s furl.Searchable, key furl.SessionKey, segments []*segment) error {
	err := part(ctx, s, key, segments, bucketDocs, every, func(seg *segment, payload []byte) error {
		seg.table = bytes.Clone(payload)
		return nil
	})
	if err != nil {
		return err
	}
	err = part(ctx, s, key, segments, bucketVocabulary, every, func(seg *segment, payload []byte) error {
		seg.lexicon = bytes.Clone(payload)
		return nil
	})
	if err != nil {
		return err
	}
	all := make(map[*segment]*termWriter)
	for level := range uint8(maxLevel + 1) {
		ofLevel := func(seg *segment) bool { return seg.level == level }
		if !slices.ContainsFunc(segments, func(seg *segment) bool { return !seg.packed && ofLevel(seg) }) {
			continue
		}
		for bucket := levelStart(level); bucket < levelStart(level+1); bucket++ {
			err := part(ctx, s, key, segments, bucket, ofLevel, func(seg *segment, payload []byte) error {
				w := all[seg]
				if w == nil {
					w = &termWriter{}
					all[seg] = w
				}
				e := readTerms(payload, level, bucket, seg.docs)
				for e.next() {
					w.add(e.hash, e.list.buf)
				}
				return e.err
			})
			if err != nil {
				return err
			}
		}
	}
	for seg, w := range all {
		seg.terms = w.take(nil)
	}
	return nil
}
