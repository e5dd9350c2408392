package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
)

// CheckBatch says why no store can append a batch to a session: the session's
// id or the tenant is invalid, a record has no body, Seqs are not in a row from
// 1 on, a parent is not below its record, or a content is too large. Stores
// call it first.
func CheckBatch(key furl.SessionKey, b *Batch) error {
	if ReservedID(key.Session) {
		return fmt.Errorf("session id %.140q is reserved: commands would read it as a flag, a path or the newest session", key.Session)
	}
	if !ValidID(key.Session) {
		return fmt.Errorf("session id %.140q: it must have 1 to 128 letters, digits, and _ . -", key.Session)
	}
	if len(key.Tenant) > maxTenant {
		return fmt.Errorf("a tenant's name of %d bytes: at most %d", len(key.Tenant), maxTenant)
	}
	most := MaxContent
	if b.ContentIDs != nil {
		if most += MaxSealed; len(b.ContentIDs) != len(b.Contents) {
			return fmt.Errorf("%d ids for %d contents", len(b.ContentIDs), len(b.Contents))
		}
	}
	for _, c := range b.Contents {
		if len(c) > most {
			return fmt.Errorf("a content of %d bytes: at most %d", len(c), most)
		}
	}
	for i := range b.Records {
		r := &b.Records[i]
		switch {
		case r.Body == nil:
			return fmt.Errorf("record %d has no body", r.Seq)
		case r.Seq == 0:
			return errors.New("a record without a number")
		case r.Seq != b.Records[0].Seq+furl.Seq(i):
			return fmt.Errorf("record %d follows %d: %w", r.Seq, b.Records[i-1].Seq, furl.ErrConflict)
		case r.Parent >= r.Seq:
			return fmt.Errorf("record %d has the parent %d", r.Seq, r.Parent)
		}
	}
	return nil
}

// ContentID returns the id of the content with index i: its SHA-256, unless the
// batch has other ids.
func (b *Batch) ContentID(i int) furl.Digest {
	if b.ContentIDs != nil {
		return b.ContentIDs[i]
	}
	return furl.DigestOf(b.Contents[i])
}

// maxTenant is the length of the longest tenant's name, in bytes.
const maxTenant = 256

// MetaMatches reports whether Meta may replace metadata that a store has as this
// JSON: MetaWas is not set, or it is the same metadata. It is also true if the store
// already has Meta, because the append may be a repetition.
func (b *Batch) MetaMatches(stored []byte) bool {
	if b.Meta == nil || b.MetaWas == nil {
		return true
	}
	was, err := json.Marshal(b.MetaWas)
	if err != nil || bytes.Equal(was, stored) {
		return err == nil
	}
	// Other versions write other bytes for the same metadata.
	return sameMeta(stored, was) || sameMetaOf(stored, b.Meta)
}

func sameMetaOf(stored []byte, m *Meta) bool {
	text, err := json.Marshal(m)
	return err == nil && sameMeta(stored, text)
}

// sameMeta reports whether two JSON texts are the same metadata in this version.
func sameMeta(a, b []byte) bool {
	a, errA := normalMeta(a)
	b, errB := normalMeta(b)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func normalMeta(text []byte) ([]byte, error) {
	var m Meta
	if len(text) > 0 {
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
	}
	return json.Marshal(&m)
}
