package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// PutVectors implements storage.VectorStore.
func (s *Store) PutVectors(ctx context.Context, key furl.SessionKey, model string, vectors []storage.Vector) error {
	if err := s.do(ctx, &job{do: func(w *writer) error { return w.putVectors(key, model, vectors) }}); err != nil {
		return s.failed(fmt.Sprintf("put vectors of session %.140q", key.Session), err)
	}
	return nil
}

func (w *writer) putVectors(key furl.SessionKey, model string, vectors []storage.Vector) error {
	ses, err := w.existing(key)
	if err != nil {
		return err
	}
	for i := range vectors {
		id, err := w.vector(ses.tenant, model, &vectors[i])
		if err != nil {
			return err
		}
		if err := w.exec("INSERT INTO session_vectors (session, vector) VALUES (?, ?) ON CONFLICT DO NOTHING", ses.id, id); err != nil {
			return err
		}
	}
	return nil
}

// vector stores a vector once for all sessions of a tenant, and returns its
// id.
func (w *writer) vector(tenant int64, model string, v *storage.Vector) (id int64, err error) {
	err = w.row("SELECT id FROM vectors WHERE tenant = ? AND model = ? AND content = ?", tenant, []byte(model), v.Content[:]).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	data := v.Data
	if data == nil {
		data = []byte{}
	}
	res, err := w.result("INSERT INTO vectors (tenant, model, content, data) VALUES (?, ?, ?, ?)", tenant, []byte(model), v.Content[:], data)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Vectors implements storage.VectorStore.
func (s *Store) Vectors(ctx context.Context, key furl.SessionKey, model string) iter.Seq2[storage.Vector, error] {
	query := `SELECT v.content, v.data FROM tenants t CROSS JOIN vectors v ON v.tenant = t.id
		WHERE t.name = ? AND v.model = ? ORDER BY v.content`
	args := []any{[]byte(key.Tenant), []byte(model)}
	if key.Session != "" {
		query = `SELECT v.content, v.data FROM tenants t CROSS JOIN sessions s ON s.tenant = t.id
			CROSS JOIN session_vectors x ON x.session = s.id CROSS JOIN vectors v ON v.id = x.vector
			WHERE t.name = ? AND v.model = ? AND s.name = ? ORDER BY v.content`
		args = append(args, string(key.Session))
	}
	return func(yield func(storage.Vector, error) bool) {
		fail := func(err error) { yield(storage.Vector{}, s.failed("read vectors", err)) }
		rows, err := s.stream(ctx, query, args)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var content, data sql.RawBytes
			if err := rows.Scan(&content, &data); err != nil {
				fail(err)
				return
			}
			v := storage.Vector{Data: data}
			copy(v.Content[:], content)
			if !yield(v, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

// FindVectors implements storage.VectorStore.
func (s *Store) FindVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) ([]storage.Vector, error) {
	found, err := s.findVectors(ctx, tenant, model, contents)
	if err != nil {
		return nil, s.failed("find vectors", err)
	}
	return found, nil
}

func (s *Store) findVectors(ctx context.Context, tenant furl.Tenant, model string, contents []furl.Digest) (found []storage.Vector, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var id int64
	err = s.read.QueryRowContext(ctx, "SELECT id FROM tenants WHERE name = ?", []byte(tenant)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stmt, err := s.read.PrepareContext(ctx, "SELECT data FROM vectors WHERE tenant = ? AND model = ? AND content = ?")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	seen := make(map[furl.Digest]bool, len(contents))
	for _, c := range contents {
		if seen[c] {
			continue
		}
		seen[c] = true
		v := storage.Vector{Content: c}
		switch err := stmt.QueryRowContext(ctx, id, []byte(model), c[:]).Scan(&v.Data); {
		case err == nil:
			found = append(found, v)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return found, nil
}
