package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// Check implements storage.Checker. It runs SQLite's integrity check, reads
// every record of every session with its body and its entry in the chain
// index, and compares the counts in the session rows. It also reports
// orphaned rows.
func (s *Store) Check(ctx context.Context, mend bool) iter.Seq2[storage.Problem, error] {
	return func(yield func(storage.Problem, error) bool) {
		c := &checker{s: s, ctx: ctx, mend: mend, yield: yield}
		err := s.ready(ctx)
		if err == nil && mend && s.write == nil {
			err = errReadOnly
		}
		for _, step := range []func() error{c.file, c.sessions, c.orphans} {
			if err == nil {
				err = step()
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(storage.Problem{}, s.failed("check", err))
		}
	}
}

// errStop ends a check whose caller stopped iterating.
var errStop = errors.New("stop")

type checker struct {
	s     *Store
	ctx   context.Context // of one call of Check
	mend  bool
	yield func(storage.Problem, error) bool
}

func (c *checker) report(p storage.Problem) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.yield(p, nil) {
		return errStop
	}
	return nil
}

// derived reports data that can be rebuilt, and rebuilds it if asked to.
func (c *checker) derived(p storage.Problem, mend func(w *writer) error) error {
	p.Derived = true
	if c.mend {
		if err := c.s.do(c.ctx, &job{do: mend}); err != nil {
			return fmt.Errorf("repair %q: %w", p.Text, err)
		}
		p.Mended = true
	}
	return c.report(p)
}

// file runs SQLite's integrity check.
func (c *checker) file() error {
	lines, err := c.texts("PRAGMA integrity_check(100)")
	if errors.Is(explain(err), furl.ErrDamaged) {
		lines, err = append(lines, err.Error()), nil
	}
	if err != nil {
		return err
	}
	indexes := false
	for _, line := range lines {
		switch {
		case line == "ok":
		case strings.Contains(line, "index "):
			indexes = true
			if !c.mend {
				err = c.report(storage.Problem{Text: "SQLite: " + line, Derived: true})
			}
		default:
			err = c.report(storage.Problem{Text: "SQLite: " + line})
		}
		if err != nil {
			return err
		}
	}
	if !indexes || !c.mend {
		return nil
	}
	return c.derived(storage.Problem{Text: "SQLite: indexes differ from their tables"}, func(w *writer) error { return w.exec("REINDEX") })
}

func (c *checker) texts(query string, args ...any) (texts []string, err error) {
	rows, err := c.s.read.QueryContext(c.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return texts, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}

// listed is a row of the sessions table.
type listed struct {
	session
	key furl.SessionKey
}

func (c *checker) sessions() error {
	rows, err := c.s.read.QueryContext(c.ctx, `SELECT t.name, s.name, s.id FROM sessions s JOIN tenants t ON t.id = s.tenant ORDER BY s.id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var all []listed
	for rows.Next() {
		var l listed
		var tenant []byte
		if err := rows.Scan(&tenant, &l.key.Session, &l.id); err != nil {
			return err
		}
		l.key.Tenant = furl.Tenant(tenant)
		all = append(all, l)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, l := range all {
		if err := c.session(l); err != nil {
			return err
		}
	}
	return nil
}

// session checks one session in one read transaction.
func (c *checker) session(l listed) error {
	tx, err := c.s.read.BeginTx(c.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // read only
	err = tx.QueryRowContext(c.ctx, "SELECT tenant, records, messages, bytes, indexed FROM sessions WHERE id = ?", l.id).
		Scan(&l.tenant, &l.records, &l.messages, &l.bytes, &l.indexed)
	if errors.Is(err, sql.ErrNoRows) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	found, err := c.records(tx, &l)
	if err != nil {
		return err
	}
	if err := c.counts(&l, found); err != nil {
		return err
	}
	if err := c.chains(tx, &l, found); err != nil {
		return err
	}
	if err := c.contents(tx, &l); err != nil {
		return err
	}
	if l.indexed <= l.records {
		return nil
	}
	p := storage.Problem{Session: l.key, Text: fmt.Sprintf("the search index covers records up to %d, but the session has %d", l.indexed, l.records)}
	return c.derived(p, func(w *writer) error {
		delete(w.sessions, l.key)
		if err := w.exec("DELETE FROM pages WHERE session = ?", l.id); err != nil {
			return err
		}
		return w.exec("UPDATE sessions SET indexed = 0 WHERE id = ?", l.id)
	})
}

// tally is the totals computed from a session's records.
type tally struct {
	records, messages, bytes int64
	chained                  []chained
	damaged                  bool // some records could not be read
}

type chained struct {
	seq   int64
	chain furl.Digest
}

// records reads the records of a session and reports each that differs from
// what was written.
func (c *checker) records(tx *sql.Tx, l *listed) (t tally, err error) {
	rows, err := tx.QueryContext(c.ctx, `SELECT r.id, r.sum, r.head, coalesce(b.codec, r.codec), coalesce(b.size, r.size), coalesce(b.data, r.body), b.digest
		FROM records r LEFT JOIN bodies b ON b.id = r.big WHERE r.id BETWEEN ? AND ? ORDER BY r.id`, recordID(l.id, 0), recordID(l.id, maxSeq))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var f fetched
		var digest []byte
		if err := rows.Scan(&f.id, &f.sum, &f.head, &f.body.codec, &f.body.size, &f.body.data, &digest); err != nil {
			return t, err
		}
		seq := f.id & maxSeq
		if seq != t.records+1 {
			t.damaged = true
			p := storage.Problem{Session: l.key, Seq: furl.Seq(t.records + 1), Text: fmt.Sprintf("records %d to %d are missing", t.records+1, seq-1)}
			if err := c.report(p); err != nil {
				return t, err
			}
		}
		t.records = seq
		text := t.add(&f, seq, digest)
		if text == "" {
			continue
		}
		t.damaged = true
		if err := c.report(storage.Problem{Session: l.key, Seq: furl.Seq(seq), Text: text}); err != nil {
			return t, err
		}
	}
	if err := rows.Err(); err != nil {
		if !errors.Is(explain(err), furl.ErrDamaged) {
			return t, err
		}
		t.damaged = true
		p := storage.Problem{Session: l.key, Seq: furl.Seq(t.records + 1), Text: fmt.Sprintf("records from %d on are unreadable: %v", t.records+1, err)}
		return t, c.report(p)
	}
	return t, nil
}

// add counts a record and describes what is wrong with it, "" if nothing.
func (t *tally) add(f *fetched, seq int64, digest []byte) string {
	r, err := f.open(seq)
	if err != nil { // its number is reported next to the text
		return strings.TrimPrefix(err.Error(), fmt.Sprintf("record %d: ", seq))
	}
	if r.Parent >= r.Seq {
		return fmt.Sprintf("invalid parent %d", r.Parent)
	}
	if digest != nil {
		_, body, err := record.Encode(r)
		if d := furl.DigestOf(body); err != nil || string(d[:]) != string(digest) {
			return "its body does not match the stored digest"
		}
	}
	size, ok := record.MessageSize(&r)
	if !ok {
		return ""
	}
	t.messages++
	t.bytes += int64(size)
	if !r.Chain.IsZero() {
		t.chained = append(t.chained, chained{seq, r.Chain})
	}
	return ""
}

// counts compares a session's row with its records.
func (c *checker) counts(l *listed, t tally) error {
	switch {
	case t.records < l.records:
		return c.report(storage.Problem{Session: l.key, Seq: furl.Seq(t.records + 1), Text: fmt.Sprintf("records %d to %d are missing", t.records+1, l.records)})
	case t.damaged || t.records == l.records && t.messages == l.messages && t.bytes == l.bytes:
		return nil
	}
	p := storage.Problem{Session: l.key, Text: fmt.Sprintf("the session row says %d records, %d messages, %d bytes; found %d, %d, %d",
		l.records, l.messages, l.bytes, t.records, t.messages, t.bytes)}
	return c.derived(p, func(w *writer) error {
		delete(w.sessions, l.key)
		return w.exec("UPDATE sessions SET records = ?, messages = ?, bytes = ? WHERE id = ? AND records = ?", t.records, t.messages, t.bytes, l.id, l.records)
	})
}

// chains looks up every message of a session in the chain index.
func (c *checker) chains(tx *sql.Tx, l *listed, t tally) error {
	stmt, err := tx.PrepareContext(c.ctx, "SELECT count(*) FROM chains WHERE tenant = ? AND chain = ? AND record = ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	var missing []chained
	for _, m := range t.chained {
		var n int
		if err := stmt.QueryRowContext(c.ctx, l.tenant, chainKey(m.chain), recordID(l.id, m.seq)).Scan(&n); err != nil {
			return err
		}
		if n != 1 {
			missing = append(missing, m)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	p := storage.Problem{Session: l.key, Seq: furl.Seq(missing[0].seq), Text: fmt.Sprintf("messages missing from the chain index: %d", len(missing))}
	return c.derived(p, func(w *writer) error {
		for _, m := range missing {
			id := recordID(l.id, m.seq)
			if err := w.exec("DELETE FROM chains WHERE tenant = ? AND chain = ? AND record = ?", l.tenant, chainKey(m.chain), id); err != nil {
				return err
			}
			// The time of the append is lost; the entries keep the order of
			// the session's messages.
			if err := w.exec("INSERT INTO chains (tenant, chain, at, record) SELECT ?, ?, created + ?, ? FROM sessions WHERE id = ?",
				l.tenant, chainKey(m.chain), m.seq, id, l.id); err != nil {
				return err
			}
		}
		return nil
	})
}

// orphans finds rows whose owner is missing.
func (c *checker) orphans() error {
	has, err := c.s.hasContents(c.ctx)
	if err != nil {
		return err
	}
	unused := "NOT EXISTS (SELECT 1 FROM records r WHERE r.big = bodies.id)"
	if has {
		unused += " AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.body = bodies.id)"
	}
	for _, o := range []struct {
		what, table, where string
		kept               bool // not removed, because it may be user data
	}{
		{"records without a session", "records", "id >> 32 NOT IN (SELECT id FROM sessions)", true},
		{"sessions without a tenant", "sessions", "tenant NOT IN (SELECT id FROM tenants)", true},
		{"chain index entries without a message", "chains", "record NOT IN (SELECT id FROM records)", false},
		{"contents without a session or a body", "contents", "session NOT IN (SELECT id FROM sessions) OR body NOT IN (SELECT id FROM bodies)", false},
		{"bodies without a record", "bodies", unused, false},
		{"index pages without a session", "pages", "session NOT IN (SELECT id FROM sessions)", false},
		{"session vectors without a session or a vector", "session_vectors", "session NOT IN (SELECT id FROM sessions) OR vector NOT IN (SELECT id FROM vectors)", false},
		{"vectors without a session", "vectors", "id NOT IN (SELECT vector FROM session_vectors)", false},
		{"tenants without sessions", "tenants", "id NOT IN (SELECT tenant FROM sessions)", false},
	} {
		if o.table == "contents" && !has {
			continue
		}
		var n int
		err := c.s.read.QueryRowContext(c.ctx, "SELECT count(*) FROM "+o.table+" WHERE "+o.where).Scan(&n)
		switch {
		case errors.Is(explain(err), furl.ErrDamaged):
			err = c.report(storage.Problem{Text: fmt.Sprintf("table %s is unreadable: %v", o.table, err)})
		case err != nil || n == 0:
		case o.kept:
			err = c.report(storage.Problem{Text: fmt.Sprintf("%d %s", n, o.what)})
		default:
			err = c.derived(storage.Problem{Text: fmt.Sprintf("%d %s", n, o.what)}, func(w *writer) error {
				return w.exec("DELETE FROM " + o.table + " WHERE " + o.where)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
