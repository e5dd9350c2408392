package transcript

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl/internal/rawjson"
)

// openclawDatabase is the database in which OpenClaw keeps all sessions of one of its agents. Seen in
// OpenClaw 2026.9.6, schema 23.
var openclawDatabase = databaseKind{
	tables: []string{"transcript_events", "session_windows", "session_nodes"},
	agent:  func(string) string { return "OpenClaw" },
	open:   func(db *sql.DB) sessionDatabase { return &openclawStore{db: db} },
}

// openclawStore reads transcripts: events in the form of pi's entries, large ones compressed. A conversation
// has a key, and a transcript with an id of its own. A rewind copies the transcript and continues the copy.
type openclawStore struct{ db *sql.DB }

// list leaves out a transcript whose newest event is in a newer transcript of the same conversation.
func (o *openclawStore) list(ctx context.Context) (list []storedSession, err error) {
	rows, err := o.db.QueryContext(ctx, `
		with newest as (
			select w.session_id, w.session_key, w.created_at, (
				select event_id from transcript_event_identities i where i.session_id = w.session_id order by seq desc limit 1) as event_id
			from session_windows w)
		select a.session_id, coalesce(p.current_session_id, ''), coalesce(f.current_session_id, n.fork_source_session_id, '')
		from newest a
		left join session_nodes n on n.session_key = a.session_key
		left join session_nodes f on f.session_key = n.fork_source_session_key
		left join session_nodes p on p.session_key = n.spawned_by and n.fork_source_session_id is null
		where exists (select 1 from transcript_events e where e.session_id = a.session_id)
			and not exists (
				select 1 from newest b join transcript_event_identities i on i.session_id = b.session_id and i.event_id = a.event_id
				where b.session_key = a.session_key and b.session_id <> a.session_id and b.created_at >= a.created_at)
		order by (select min(created_at) from session_windows w where w.session_key = a.session_key), a.created_at, a.session_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s storedSession
		if err := rows.Scan(&s.id, &s.parent, &s.forkOf); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

func (o *openclawStore) size(ctx context.Context, id string) (n int64, err error) {
	err = o.db.QueryRowContext(ctx, `select coalesce(sum(coalesce(octet_length(event_json), event_utf8_bytes)), 0) from transcript_events where session_id = ?1`, id).Scan(&n)
	return n, err
}

// maxOpenclawEvent is the size up to which OpenClaw compresses an event, in bytes.
const maxOpenclawEvent = 4 << 20

// text returns the events as JSON Lines, and the conversation's name as one more. A compressed event that
// cannot be unpacked is a line that the reader reports.
func (o *openclawStore) text(ctx context.Context, id string) (out []byte, err error) {
	tx, err := o.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxOpenclawEvent))
	if err != nil {
		return nil, err
	}
	defer unpacker.Close()
	rows, err := tx.QueryContext(ctx, `select seq, event_json, event_zstd, coalesce(event_utf8_bytes, 0) from transcript_events where session_id = ?1 order by seq`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq, size int64
		var plain, packed []byte
		if err := rows.Scan(&seq, &plain, &packed, &size); err != nil {
			return nil, err
		}
		if packed != nil {
			plain, err = unpacker.DecodeAll(packed, nil)
			if err == nil && int64(len(plain)) != size {
				err = fmt.Errorf("%d bytes instead of %d", len(plain), size)
			}
			if err != nil {
				plain = fmt.Appendf(nil, "event %d cannot be unpacked: %v", seq, err)
			}
		}
		out = append(append(out, plain...), '\n')
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var name string
	err = tx.QueryRowContext(ctx, `
		select coalesce(nullif(n.label, ''), nullif(n.display_name, ''), '') from session_windows w
		join session_nodes n on n.session_key = w.session_key where w.session_id = ?1`, id).Scan(&name)
	if err == nil && name != "" {
		out = append(rawjson.AppendString(append(out, `{"type":"session_info","name":`...), name), '}', '\n')
	}
	return out, nil
}
