package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	return s.AppendEarly(ctx, key, b, func() {})
}

// AppendEarly implements storage.EarlyAppender: committed is called before the
// write is flushed to disk.
func (s *Store) AppendEarly(ctx context.Context, key furl.SessionKey, b storage.Batch, committed func()) error {
	staged, err := s.Stage(ctx, key, b)
	if err != nil {
		return err
	}
	return staged.Append(ctx, committed)
}

// staged is a batch in its stored form.
type staged struct {
	s              *Store
	key            furl.SessionKey
	batch          storage.Batch
	rows, contents []row
	meta           *storedMeta // nil: unchanged
}

// Stage implements storage.Stager: the work that does not need the file, on the caller's
// goroutine.
func (s *Store) Stage(_ context.Context, key furl.SessionKey, b storage.Batch) (storage.Staged, error) {
	a := &staged{s: s, key: key, batch: b}
	err := storage.CheckBatch(key, &b)
	if err == nil {
		a.rows, err = rowsOf(b.Records)
	}
	if err == nil && b.Meta != nil {
		a.meta, err = metaOf(b.Meta)
	}
	if err != nil {
		return nil, a.failed(err)
	}
	a.contents = packContents(&b)
	return a, nil
}

// Append implements storage.Staged.
func (a *staged) Append(ctx context.Context, committed func()) error {
	j := &job{do: func(w *writer) error { return w.append(a.key, &a.batch, a.rows, a.contents, a.meta) }}
	err := a.s.doEarly(ctx, j, func() {
		a.s.watchers.notify(a.key)
		committed()
	})
	if err != nil {
		return a.failed(err)
	}
	return nil
}

func (a *staged) failed(err error) error {
	return a.s.failed(fmt.Sprintf("append to session %.140q", a.key.Session), err)
}

// row is a record in its stored form.
type row struct {
	seq        int64
	head, body []byte
	packed     []byte
	codec      int
	sum        int64
	digest     furl.Digest // of a body that is stored in its own row
	chain      furl.Digest // of a message
	message    bool
	size       int64 // of the message on the wire
}

func rowsOf(records []furl.Record) ([]row, error) {
	rows := make([]row, len(records))
	for i, r := range records {
		head, body, err := record.Encode(r)
		if err != nil {
			return nil, err
		}
		out := row{seq: int64(r.Seq), head: head, body: body, sum: sumOf(head, body)}
		if size, ok := record.MessageSize(&r); ok {
			out.message, out.chain, out.size = true, r.Chain, int64(size)
		}
		if body != nil {
			if _, ok := r.Body.(*furl.Sealed); ok {
				out.codec, out.packed = codecSealed, body
			} else {
				out.codec, out.packed = pack(body)
			}
			if len(out.packed) > inlineTo {
				out.digest = furl.DigestOf(body)
			}
		}
		rows[i] = out
	}
	return rows, nil
}

// A record's id consists of its session's id and its number.
const (
	seqBits = 32
	maxSeq  = 1<<seqBits - 1
)

func recordID(session, seq int64) int64 { return session<<seqBits | seq }

// append does what Store.Append promises, in a transaction.
func (w *writer) append(key furl.SessionKey, b *storage.Batch, rows, contents []row, meta *storedMeta) error {
	ses, err := w.session(key)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if ses == nil {
			return noSession(key.Session)
		}
		if err := w.checkMeta(ses, b); err != nil {
			return err
		}
		return w.setMeta(ses, meta)
	}
	var has int64
	if ses != nil {
		has = ses.records
	}
	if first := rows[0].seq; first != has+1 {
		if first <= has {
			if same, err := w.repeats(ses, rows); same || err != nil {
				return err
			}
		}
		return refuse("record %d: the session has %d: %w", first, has, furl.ErrConflict)
	}
	if rows[len(rows)-1].seq > maxSeq {
		return refuse("the session has %d records, the maximum: start a new session", has)
	}
	if ses == nil {
		if ses, err = w.create(key, w.tick()); err != nil {
			return err
		}
	} else if err := w.checkMeta(ses, b); err != nil {
		return err
	}
	for i := range rows {
		if err := w.add(ses, &rows[i]); err != nil {
			return err
		}
	}
	if err := w.addContents(ses, contents); err != nil {
		return err
	}
	if meta == nil {
		w.touch(ses)
		return nil
	}
	return w.setMeta(ses, meta)
}

// add writes one record after the session's last.
func (w *writer) add(ses *session, r *row) error {
	ses.records++
	ses.updated = w.tick()
	id := recordID(ses.id, ses.records)
	var err error
	switch {
	case r.body == nil:
		err = w.exec("INSERT INTO records (id, sum, head) VALUES (?, ?, ?)", id, r.sum, r.head)
	case len(r.packed) <= inlineTo:
		err = w.exec("INSERT INTO records (id, sum, head, codec, size, body) VALUES (?, ?, ?, ?, ?, ?)",
			id, r.sum, r.head, r.codec, len(r.body), r.packed)
	default:
		var big int64
		if big, err = w.share(ses.tenant, r); err == nil {
			err = w.exec("INSERT INTO records (id, sum, head, big) VALUES (?, ?, ?, ?)", id, r.sum, r.head, big)
		}
	}
	if err != nil || !r.message {
		return err
	}
	ses.messages++
	ses.bytes += r.size
	if r.chain.IsZero() {
		return nil
	}
	return w.exec("INSERT INTO chains (tenant, chain, at, record) VALUES (?, ?, ?, ?)", ses.tenant, chainKey(r.chain), ses.updated, id)
}

// share stores a body once for all sessions of a tenant, and returns its id.
func (w *writer) share(tenant int64, r *row) (id int64, err error) {
	err = w.row("SELECT id FROM bodies WHERE tenant = ? AND digest = ?", tenant, r.digest[:]).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	res, err := w.result("INSERT INTO bodies (tenant, digest, codec, size, data) VALUES (?, ?, ?, ?, ?)",
		tenant, r.digest[:], r.codec, len(r.body), r.packed)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// chainKey returns the part of a chain that is in the index.
func chainKey(chain furl.Digest) int64 {
	return int64(binary.BigEndian.Uint64(chain[:]))
}

// repeats reports whether the session already has these records.
func (w *writer) repeats(ses *session, rows []row) (bool, error) {
	if rows[len(rows)-1].seq > ses.records {
		return false, nil
	}
	for i := range rows {
		r := &rows[i]
		var sum int64
		var head []byte
		var body packedBody
		err := w.row(`SELECT r.sum, r.head, coalesce(b.codec, r.codec), coalesce(b.size, r.size), coalesce(b.data, r.body)
			FROM records r LEFT JOIN bodies b ON b.id = r.big WHERE r.id = ?`, recordID(ses.id, r.seq)).
			Scan(&sum, &head, &body.codec, &body.size, &body.data)
		if err != nil {
			return false, err
		}
		if sum != r.sum || !bytes.Equal(head, r.head) {
			return false, nil
		}
		had, err := body.open()
		if err != nil {
			return false, err
		}
		if !bytes.Equal(had, r.body) {
			return false, nil
		}
	}
	return true, nil
}

// storedMeta is a storage.Meta in its stored form.
type storedMeta struct{ text, hint []byte }

func metaOf(m *storage.Meta) (*storedMeta, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := &storedMeta{text: text}
	if m.Hint != "" {
		if out.hint, err = jsonText(m.Hint); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// jsonText returns a string as it is after it was stored as JSON, which has only text.
func jsonText(s string) ([]byte, error) {
	if utf8.ValidString(s) {
		return []byte(s), nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var back string
	err = json.Unmarshal(text, &back)
	return []byte(back), err
}

// checkMeta returns an error if the session has other metadata than the batch expects.
func (w *writer) checkMeta(ses *session, b *storage.Batch) error {
	if b.Meta == nil || b.MetaWas == nil {
		return nil
	}
	var stored []byte
	if err := w.row("SELECT meta FROM sessions WHERE id = ?", ses.id).Scan(&stored); err != nil {
		return err
	}
	if !b.MetaMatches(stored) {
		return refuse("the session's metadata has changed: %w", furl.ErrConflict)
	}
	return nil
}

// setMeta writes the row of a session with new metadata. It names the hint only if that
// changes: SQLite would write its index again, too.
func (w *writer) setMeta(ses *session, meta *storedMeta) error {
	if meta == nil {
		return nil
	}
	if bytes.Equal(meta.hint, ses.hint) {
		return w.exec("UPDATE sessions SET records = ?, messages = ?, bytes = ?, updated = ?, indexed = ?, meta = ? WHERE id = ?",
			ses.records, ses.messages, ses.bytes, ses.updated, ses.indexed, meta.text, ses.id)
	}
	ses.hint = meta.hint
	return w.exec("UPDATE sessions SET records = ?, messages = ?, bytes = ?, updated = ?, indexed = ?, meta = ?, hint = ? WHERE id = ?",
		ses.records, ses.messages, ses.bytes, ses.updated, ses.indexed, meta.text, meta.hint, ses.id)
}
