package transcript

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// crushDatabase is the database of a project in which Crush keeps its sessions. Written from the public source of
// charmbracelet/crush, internal/db and internal/message, of September 2026; Crush itself was not run.
var crushDatabase = databaseKind{
	tables: []string{"sessions", "messages", "files", "goose_db_version"},
	agent:  func(string) string { return crush.agent },
	open:   func(db *sql.DB) sessionDatabase { return &crushStore{db: db} },
}

// crush is the form into which a session of the database is combined: an object {session, messages[]} of its rows.
// parts[] of a message are objects {type, data}.
var crush = &format{
	name:  "crush",
	agent: "Crush",
	detect: func(p *probe) bool {
		return p.is('{') && first(p).object("session").has("id", "prompt_tokens", "completion_tokens") && first(p).kind("messages") == '['
	},
	read: readCrush,
}

type crushStore struct{ db *sql.DB }

func (c *crushStore) list(ctx context.Context) (list []storedSession, err error) {
	rows, err := c.db.QueryContext(ctx, `select id, coalesce(parent_session_id, '') from sessions order by created_at, rowid`)
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

func (c *crushStore) size(ctx context.Context, id string) (n int64, err error) {
	err = c.db.QueryRowContext(ctx, `select coalesce(sum(octet_length(parts)), 0) from messages where session_id = ?1`, id).Scan(&n)
	return n, err
}

func (c *crushStore) text(ctx context.Context, id string) ([]byte, error) {
	tx, err := c.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	var head []byte
	err = tx.QueryRowContext(ctx, `select json_object('id', id, 'title', title, 'created_at', created_at,
		'prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens, 'cost', cost) from sessions where id = ?1`, id).Scan(&head)
	if err != nil {
		return nil, err
	}
	out := append(append([]byte(`{"session":`), head...), `,"messages":[`...)
	rows, err := tx.QueryContext(ctx, `select json_object('id', id, 'role', role, 'model', model, 'created_at', created_at,
		'summary', is_summary_message), parts from messages where session_id = ?1 order by created_at, rowid`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		var about, parts []byte
		if err := rows.Scan(&about, &parts); err != nil {
			return nil, err
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(append(out, about[:len(about)-1]...), `,"parts":`...)
		if rawjson.Check(parts) == nil {
			out = append(out, parts...)
		} else { // the reader reports it
			out = rawjson.AppendString(out, string(parts))
		}
		out = append(out, '}')
	}
	return append(out, "]}"...), rows.Err()
}

type crushMessage struct {
	Role    string  `json:"role"`
	Model   string  `json:"model"`
	Created float64 `json:"created_at"` // Unix seconds
	Summary int     `json:"summary"`
	Parts   []struct {
		Type string    `json:"type"`
		Data crushPart `json:"data"`
	} `json:"parts"`
}

// crushPart has the fields of all types of parts.
type crushPart struct {
	Text      string `json:"text"` // text
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Responses struct {
		ItemID    string `json:"item_id"`
		Encrypted string `json:"encrypted_content"`
	} `json:"responses_data"`

	ID    string `json:"id"` // tool_call
	Name  string `json:"name"`
	Input string `json:"input"` // JSON

	CallID  string `json:"tool_call_id"` // tool_result
	Content string `json:"content"`
	Base64  string `json:"data"`
	Mime    string `json:"mime_type"`
	IsError bool   `json:"is_error"`

	Path     string `json:"Path"` // binary, whose fields have no tags
	MIMEType string `json:"MIMEType"`
	Binary   string `json:"Data"`

	Command  string `json:"command"` // shell_command
	Output   string `json:"output"`
	ExitCode int    `json:"exit_code"`

	Reason string `json:"reason"` // finish
}

// crushNoResult is what Crush sends for a call without a result.
const crushNoResult = "tool call was interrupted and did not produce a result, you may retry this call if the result is still needed"

func readCrush(in *input) ([]*Session, error) {
	var list []crushMessage
	var models []string
	for i, raw := range in.elements(in.data, "messages") {
		var m crushMessage
		err := lenient(raw, &m)
		if err == nil && objectOf(raw).kind("parts") != '[' {
			err = errors.New("its parts are not a list")
		}
		if err != nil {
			in.skip(0, "message %d: %v", i+1, err)
			continue
		}
		if m.Role == "assistant" && m.Summary == 0 {
			models = append(models, m.Model)
		}
		list = append(list, m)
	}
	model := commonModel(models)
	s := newScribe(in, wireOf(model, furl.FormatResponses), model)
	about := objectOf(in.data).object("session")
	s.b.ID, s.b.Title = about.str("id"), headline(about.str("title"))
	if dir := filepath.Dir(in.name); filepath.Base(dir) == ".crush" {
		s.b.Project = filepath.Dir(dir)
	}
	if cost, err := json.Number(about["cost"]).Float64(); err == nil && cost > 0 {
		in.note("Crush recorded a cost of $%.4f for the session, and no tokens of single requests", cost)
	}
	open := make(map[string]bool) // calls without a result, by id on the wire
	for i := range list {
		s.crush(i, &list[i], open)
	}
	out := s.finish()
	out.Messages = len(list)
	return []*Session{out}, nil
}

func (s *scribe) crush(i int, m *crushMessage, open map[string]bool) {
	at := milliTime(m.Created * 1000)
	if m.Role != "tool" {
		for _, id := range slices.Sorted(maps.Keys(open)) {
			s.result(at, 0, piece{id: id, text: crushNoResult, failed: true, made: true})
			delete(open, id)
		}
	}
	pieces, results, reason := m.pieces()
	switch {
	case m.Summary != 0:
		s.crushSummary(i, m, joinWords(pieces))
	case m.Role == "user":
		s.user(at, 0, pieces...)
	case m.Role == "system":
		s.system(at, 0, joinWords(pieces))
	case m.Role == "assistant":
		s.reply(at, furl.Exchange{Model: m.Model, Stop: reason})
		s.assistant(at, 0, pieces)
		for _, p := range pieces {
			if p.kind == furl.KindCall {
				open[p.id] = true
			}
		}
	case m.Role == "tool":
		for _, res := range results {
			res.id = s.r.answers(res.id)
			delete(open, res.id)
			s.result(at, 0, res)
		}
	default:
		s.b.in.skip(0, "message %d: unknown role %q", i+1, m.Role)
	}
}

// crushSummary replaces everything before it: Crush sends a summary as a message of the user.
func (s *scribe) crushSummary(i int, m *crushMessage, text string) {
	s.settle()
	show, err := s.r.user([]piece{words(text)})
	if err != nil || text == "" {
		s.b.in.skip(0, "message %d: a summary without a text", i+1)
		return
	}
	s.b.compact(milliTime(m.Created*1000), 0, compaction{
		stage: "compact", reason: "Crush compacted the conversation", show: show, all: true,
		summary: &furl.Summary{Text: text, Model: m.Model},
	})
}

// pieces splits a message, as Crush sends it: the texts in front, and commands of the user as text.
func (m *crushMessage) pieces() (pieces, results []piece, reason string) {
	for i := range m.Parts {
		switch d := &m.Parts[i].Data; m.Parts[i].Type {
		case "text":
			if text := strings.TrimSpace(d.Text); text != "" {
				pieces = append(pieces, words(text))
			}
		case "reasoning":
			pc := piece{kind: furl.KindThinking, text: d.Thinking, signature: d.Signature, itemID: d.Responses.ItemID}
			if d.Responses.Encrypted != "" {
				pc.signature = d.Responses.Encrypted
			}
			pieces = append(pieces, pc)
		case "tool_call":
			pieces = append(pieces, piece{kind: furl.KindCall, id: d.ID, name: d.Name, args: json.RawMessage(d.Input)})
		case "tool_result":
			res := piece{id: d.CallID, text: d.Content, failed: d.IsError}
			if d.Base64 != "" && !d.IsError {
				res.images = []picture{{mime: d.Mime, data: d.Base64}}
			}
			results = append(results, res)
		case "binary":
			if strings.HasPrefix(d.MIMEType, "image/") {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{{mime: d.MIMEType, data: d.Binary}}})
			}
		case "shell_command":
			pieces = append(pieces, words(fmt.Sprintf("$ %s\n%s\n(exit code %d)", d.Command, d.Output, d.ExitCode)))
		case "finish":
			reason = d.Reason
		}
	}
	return pieces, results, reason
}
