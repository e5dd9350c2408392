package transcript

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// opencodeDatabase is the database in which opencode keeps its sessions since February 2026, and
// Kilo. Seen in opencode 1.18.34 and Kilo 7.7.9.
var opencodeDatabase = databaseKind{
	tables: []string{"session", "message", "part"},
	agent: func(path string) string {
		if strings.HasPrefix(filepath.Base(path), "kilo") {
			return "Kilo"
		}
		return "opencode"
	},
	open: func(db *sql.DB) sessionDatabase { return &opencodeStore{db: db} },
}

// opencodeStore reads the rows of messages and parts. What the user undid by a revert is not
// among them; it is only in the events from which opencode makes the rows.
type opencodeStore struct{ db *sql.DB }

func (o *opencodeStore) list(ctx context.Context) (list []storedSession, err error) {
	rows, err := o.db.QueryContext(ctx, `select id, coalesce(parent_id, '') from session order by time_created, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s storedSession
		if err := rows.Scan(&s.id, &s.parent); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

func (o *opencodeStore) size(ctx context.Context, id string) (n int64, err error) {
	err = o.db.QueryRowContext(ctx, `
		select coalesce((select sum(octet_length(data)) from message where session_id = ?1), 0)
		     + coalesce((select sum(octet_length(data)) from part where session_id = ?1), 0)`, id).Scan(&n)
	return n, err
}

// opencodeRow is a message or a part.
type opencodeRow struct {
	id, message string
	data        []byte
	removed     bool
}

// text combines a session into the form that opencode exports, with removed messages in addition.
func (o *opencodeStore) text(ctx context.Context, id string) ([]byte, error) {
	tx, err := o.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	head, reverted, err := opencodeHead(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	messages, err := opencodeRows(ctx, tx, `select id, '', data from message where session_id = ?1 order by id`, id)
	if err != nil {
		return nil, err
	}
	parts, err := opencodeRows(ctx, tx, `select id, message_id, data from part where session_id = ?1 order by id`, id)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		messages[i].removed = reverted != "" && messages[i].id >= reverted
	}
	gone, goneParts, err := opencodeRemoved(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	messages, parts = addMissing(messages, gone), addMissing(parts, goneParts)
	of := make(map[string][]opencodeRow)
	for _, p := range parts {
		of[p.message] = append(of[p.message], p)
	}
	out := append([]byte(`{"info":`), head...)
	out = append(out, `,"messages":[`...)
	for i, m := range messages {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"info":`...), m.named()...), `,"parts":[`...)
		for j, p := range of[m.id] {
			if j > 0 {
				out = append(out, ',')
			}
			out = append(out, p.named()...)
		}
		out = append(out, ']')
		if m.removed {
			out = append(out, `,"removed":true`...)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...), nil
}

// opencodeHead returns the description of a session, and the first of the messages that the user
// undid and could still restore.
func opencodeHead(ctx context.Context, tx *sql.Tx, id string) (head []byte, reverted string, err error) {
	var info struct {
		ID        string `json:"id"`
		ParentID  string `json:"parentID,omitempty"`
		Title     string `json:"title"`
		Directory string `json:"directory"`
		Time      struct {
			Created int64 `json:"created"`
		} `json:"time"`
	}
	var revert string
	err = tx.QueryRowContext(ctx, `select id, coalesce(parent_id, ''), title, directory, time_created, coalesce(revert, '') from session where id = ?1`, id).
		Scan(&info.ID, &info.ParentID, &info.Title, &info.Directory, &info.Time.Created, &revert)
	if err != nil {
		return nil, "", err
	}
	if o := objectOf([]byte(revert)); o.str("partID") == "" { // else a part of the message stays
		reverted = o.str("messageID")
	}
	head, err = json.Marshal(info)
	return head, reverted, err
}

func opencodeRows(ctx context.Context, tx *sql.Tx, query, id string) (list []opencodeRow, err error) {
	rows, err := tx.QueryContext(ctx, query, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r opencodeRow
		var id, message sql.NullString
		if err := rows.Scan(&id, &message, &r.data); err != nil {
			return nil, err
		}
		r.id, r.message = id.String, message.String
		if isComplete(r.data) {
			list = append(list, r)
		}
	}
	return list, rows.Err()
}

// opencodeRemoved returns the messages that a revert removed, and their parts, as the last events before
// have them. Older databases have no events.
func opencodeRemoved(ctx context.Context, tx *sql.Tx, id string) (messages, parts []opencodeRow, err error) {
	var has bool
	if err := tx.QueryRowContext(ctx, `select exists (select 1 from sqlite_master where type = 'table' and name = 'event')`).Scan(&has); err != nil || !has {
		return nil, nil, err
	}
	const removed = `select ` + jsonField + `'$.messageID') end from event where aggregate_id = ?1 and type like 'message.removed.%'`
	messages, err = opencodeRows(ctx, tx, `
		select `+jsonField+`'$.info.id') end as message, '', `+jsonField+`'$.info') end from event
		where aggregate_id = ?1 and type like 'message.updated.%' and message in (`+removed+`) order by seq`, id)
	if err != nil {
		return nil, nil, err
	}
	parts, err = opencodeRows(ctx, tx, `
		select `+jsonField+`'$.part.id') end, `+jsonField+`'$.part.messageID') end as message, `+jsonField+`'$.part') end from event
		where aggregate_id = ?1 and type like 'message.part.updated.%' and message in (`+removed+`) order by seq`, id)
	for i := range messages {
		messages[i].removed = true
	}
	return messages, parts, err
}

// jsonField begins an expression for a field of an event, null if the event is not JSON.
const jsonField = `case when json_valid(data) then json_extract(data, `

// addMissing adds rows that are not in the list, each in its newest state. Ids sort by time.
func addMissing(list, more []opencodeRow) []opencodeRow {
	known := make(map[string]bool)
	for _, r := range list {
		known[r.id] = true
	}
	for _, r := range slices.Backward(more) {
		if !known[r.id] {
			known[r.id] = true
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b opencodeRow) int { return strings.Compare(a.id, b.id) })
	return list
}

// named returns the row's JSON object with its id.
func (r *opencodeRow) named() []byte {
	if objectOf(r.data).has("id") {
		return r.data
	}
	out := rawjson.AppendString([]byte(`{"id":`), r.id)
	if len(objectOf(r.data)) > 0 {
		out = append(out, ',')
	}
	return append(out, r.data[1:]...)
}
