package encrypted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// sealBatch returns a batch as the store below gets it.
func (k *keys) sealBatch(session furl.SessionID, b *storage.Batch) (*storage.Batch, error) {
	out := &storage.Batch{Records: make([]furl.Record, len(b.Records))}
	var err error
	for i := range b.Records {
		if out.Records[i], err = k.sealRecord(session, &b.Records[i]); err != nil {
			return nil, err
		}
	}
	if len(b.Contents) > 0 {
		out.Contents, out.ContentIDs = make([][]byte, len(b.Contents)), make([]furl.Digest, len(b.Contents))
	}
	for i, c := range b.Contents {
		digest := b.ContentID(i)
		id := k.contents.of(digest[:])
		out.Contents[i], out.ContentIDs[i] = k.seal(contentPlace(id), c), id
	}
	if out.Meta, err = k.sealMeta(session, b.Meta); err != nil {
		return nil, err
	}
	out.MetaWas, err = k.sealMeta(session, b.MetaWas)
	return out, err
}

// sealMeta returns metadata as the store below gets it, nil for none.
func (k *keys) sealMeta(session furl.SessionID, m *storage.Meta) (*storage.Meta, error) {
	if m == nil {
		return nil, nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := &storage.Meta{Sealed: k.seal(place{kind: metaKind, session: session}, text)}
	if m.Hint != "" {
		out.Hint = k.hint(m.Hint)
	}
	return out, nil
}

// hint returns the keyed digest of a client's id of a session.
func (k *keys) hint(hint string) string {
	d := k.hints.of([]byte(string([]rune(hint)))) // in JSON's form
	return base64.RawURLEncoding.EncodeToString(d[:16])
}

// DestroyedTitle is the title of sessions whose keys were destroyed.
const DestroyedTitle = "(encryption keys destroyed)"

// openInfo opens the metadata of a session. k is nil if the tenant has no keys.
func (k *keys) openInfo(info *storage.SessionInfo) error {
	sealed := info.Sealed
	switch {
	case sealed == nil:
		return nil
	case k == nil:
		return &KeyError{Tenant: info.Tenant}
	case !k.destroyed.IsZero():
		info.Meta = storage.Meta{Title: DestroyedTitle}
		return nil
	}
	text, err := k.open(nil, place{kind: metaKind, session: info.Session}, sealed)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	info.Meta = storage.Meta{}
	if err := json.Unmarshal(text, &info.Meta); err != nil {
		return fmt.Errorf("metadata: %w: %w", furl.ErrDamaged, err)
	}
	return nil
}

// matches reports whether the batch may replace metadata.
func matches(b *storage.Batch, had *storage.Meta) bool {
	text, err := json.Marshal(had)
	return err == nil && b.MetaMatches(text)
}
