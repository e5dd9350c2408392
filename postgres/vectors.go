package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// putVectorsSQL adds vectors to a session, if it exists and is not deleted
// meanwhile. See migrations/0004.sql.
const putVectorsSQL = `select furl.put_vectors($1, $2, $3, $4, $5, $6)`

// PutVectors implements storage.VectorStore. If the session does not exist, it
// returns an error wrapping storage.ErrNoSession. Each session has its own rows;
// vectors that the tenant already has are copied.
func (s *Store) PutVectors(ctx context.Context, key furl.SessionKey, model string, v []storage.Vector) error {
	err := validKey(key)
	for first := true; err == nil && (first || len(v) > 0); first = false {
		var (
			digests        []furl.Digest
			contents, data [][]byte
			size           int
		)
		for len(v) > 0 && size < pageBytes {
			digests, contents = append(digests, v[0].Content), append(contents, append([]byte(nil), v[0].Content[:]...))
			data = append(data, append([]byte{}, v[0].Data...)) // nil would be null
			size += len(v[0].Data)
			v = v[1:]
		}
		var known []storage.Vector
		if known, err = s.FindVectors(ctx, key.Tenant, model, digests); err != nil {
			break
		}
		had := make(map[furl.Digest][]byte, len(known))
		for _, k := range known {
			had[k.Content] = k.Data
		}
		for i := range digests {
			if d, ok := had[digests[i]]; ok {
				data[i] = d
			}
		}
		err = s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
			var exists bool
			err := s.pool.QueryRow(ctx, putVectorsSQL, []byte(key.Tenant), string(key.Session), []byte(model), contents, data, !s.citus.Load()).Scan(&exists)
			if err == nil && !exists {
				err = storage.ErrNoSession
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("put vectors of session %s: %w", key.Session, err)
	}
	return nil
}

const (
	vectorsSQL = `
select content, data from furl.vectors
where tenant = $1 and session = $2 and model = $3 and content > $4
order by content limit $5`

	// allVectorsSQL returns each content once, whichever sessions have it.
	allVectorsSQL = `
select distinct on (content) content, data from furl.vectors
where tenant = $1 and $2 = '' and model = $3 and content > $4
order by content, session limit $5`

	findVectorsSQL = `
select distinct on (content) content, data from furl.vectors
where tenant = $1 and model = $2 and content = any($3)
order by content, session`
)

// Vectors implements storage.VectorStore.
func (s *Store) Vectors(ctx context.Context, key furl.SessionKey, model string) iter.Seq2[storage.Vector, error] {
	return func(yield func(storage.Vector, error) bool) {
		if key.Session != "" && validKey(key) != nil {
			return // no such session has vectors
		}
		sql := vectorsSQL
		if key.Session == "" {
			sql = allVectorsSQL
		}
		at, seen := []byte{}, fetch{}
		for {
			limit := seen.next()
			found, err := s.vectors(ctx, key, sql, []byte(key.Tenant), string(key.Session), []byte(model), at, limit)
			if err != nil {
				yield(storage.Vector{}, fmt.Errorf("read vectors: %w", err))
				return
			}
			for _, v := range found {
				seen.rows, seen.bytes = seen.rows+1, seen.bytes+int64(len(v.Data))
				if !yield(v, nil) {
					return
				}
			}
			if int64(len(found)) < limit {
				return
			}
			at = found[len(found)-1].Content[:]
		}
	}
}

// FindVectors implements storage.VectorStore. The result is ordered by digest.
func (s *Store) FindVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) ([]storage.Vector, error) {
	if len(contents) == 0 {
		return nil, nil
	}
	wanted := make([][]byte, len(contents))
	for i := range contents {
		wanted[i] = contents[i][:]
	}
	found, err := s.vectors(ctx, furl.SessionKey{}, findVectorsSQL, []byte(tenant), []byte(model), wanted)
	if err != nil {
		return nil, fmt.Errorf("find vectors: %w", err)
	}
	return found, nil
}

// vectors runs a statement that returns contents and data.
func (s *Store) vectors(ctx context.Context, key furl.SessionKey, sql string, args ...any) (found []storage.Vector, err error) {
	err = s.doFor(ctx, key, func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (storage.Vector, error) {
			var (
				v       storage.Vector
				content []byte
			)
			err := r.Scan(&content, &v.Data)
			copy(v.Content[:], content)
			return v, err
		})
		return err
	})
	return found, err
}
