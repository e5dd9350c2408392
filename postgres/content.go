package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// contents are those of a batch, as the columns of the table.
type contents struct {
	digests, data [][]byte
	sizes         []int32
}

// contentSQL returns no row if the session does not exist, and NULL if it has
// no such content.
const contentSQL = `
select c.size, c.data from furl.sessions s
left join furl.contents c on c.tenant = s.tenant and c.session = s.session and c.digest = $3
where s.tenant = $1 and s.session = $2`

// encodeContents packs the contents of an append whose records have this many bytes.
func encodeContents(b *storage.Batch, total, maxBatch int) (c contents, err error) {
	for i, content := range b.Contents {
		if content == nil {
			content = []byte{} // not NULL
		}
		if total += len(content); total > maxBatch {
			return c, fmt.Errorf("records and contents are too large: the limit for a batch is %d bytes", maxBatch)
		}
		digest := b.ContentID(i)
		c.digests, c.sizes = append(c.digests, digest[:]), append(c.sizes, int32(len(content)))
		if b.ContentIDs != nil {
			c.data = append(c.data, packSealed(content))
		} else {
			c.data = append(c.data, pack(content))
		}
	}
	return c, nil
}

// Content implements storage.ContentStore.
func (s *Store) Content(ctx context.Context, key furl.SessionKey, digest furl.Digest) ([]byte, error) {
	var content []byte
	err := validKey(key)
	if err == nil {
		err = s.doFor(ctx, key, func(ctx context.Context, _ bool) (err error) {
			var size *int32
			var data []byte
			err = s.pool.QueryRow(ctx, contentSQL, []byte(key.Tenant), string(key.Session), digest[:]).Scan(&size, &data)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return storage.ErrNoSession
			case err != nil:
				return err
			case size == nil:
				return storage.ErrNoContent
			}
			content, err = openContent(digest[:], data, *size)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read content %v of session %.140q: %w", digest, key.Session, err)
	}
	return content, nil
}

// openContent unpacks a content and verifies it.
func openContent(digest, data []byte, size int32) ([]byte, error) {
	content, err := unpack(data, int(size))
	if err == nil && data[0] != packSeal && furl.DigestOf(content) != furl.Digest(digest) {
		err = errors.New("its bytes do not match the digest")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", furl.ErrDamaged, err)
	}
	return content, nil
}

// contents reports the contents of a session that are damaged.
func (c *checker) contents(key furl.SessionKey) error {
	at := []byte{}
	for {
		var texts []string
		n := 0
		err := c.s.doFor(c.ctx, key, func(ctx context.Context, _ bool) error {
			texts, n = nil, 0
			begun := at
			found, err := c.s.pool.Query(ctx, `
				select digest, size, data from furl.contents
				where tenant = $1 and session = $2 and digest > $3 order by digest limit 16`, []byte(key.Tenant), string(key.Session), begun)
			if err != nil {
				return err
			}
			defer found.Close()
			next := at
			for ; found.Next(); n++ {
				var digest, data []byte
				var size int32
				if err := found.Scan(&digest, &size, &data); err != nil {
					return err
				}
				next = digest
				if len(digest) != len(furl.Digest{}) {
					texts = append(texts, fmt.Sprintf("a content has a digest of %d bytes", len(digest)))
				} else if _, err := openContent(digest, data, size); err != nil {
					texts = append(texts, fmt.Sprintf("content %.8x: %v", digest, err))
				}
			}
			if err := found.Err(); err != nil {
				return err
			}
			at = next
			return nil
		})
		if err != nil {
			return err
		}
		for _, text := range texts {
			if err := c.found(storage.Problem{Session: key, Text: text}); err != nil {
				return err
			}
		}
		if n < 16 {
			return nil
		}
	}
}
