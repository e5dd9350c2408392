package demo

// Files of the project that are not generated from templates.
const (
	readme = `# quay

Quay plans berths for a small harbour. A vessel asks for a call, quay finds a
berth that is deep and long enough at the tide of that hour, books pilots and
tugs, and writes the invoice when the last line is off.

    go run ./cmd/quay -db postgres://localhost/quay -listen :8340

## Layout

- internal/model: berths, vessels, calls, tides, tariffs, invoices
- internal/store: one file a table, hand-written SQL
- internal/planner: the rules of the harbour, one type each
- internal/api: the HTTP interface under /v1
`
	changelog = `# Changelog

## Unreleased

- The planner explains which rule refused a berth.

## 0.4.0

- Tides are read from the station's own table.
- Invoices get numbers that count up within a year.
`
	storeCommon = `// Package store keeps what the harbour knows in PostgreSQL.
package store

import (
	"database/sql"
	"errors"
)

// ErrNotFound is returned when there is nothing with that id or value.
var ErrNotFound = errors.New("not found")

type scanner interface{ Scan(dest ...any) error }

// one returns ErrNotFound if a statement changed no row.
func one(res sql.Result) error {
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotFound
	}
	return nil
}
`
	apiCommon = `// Package api serves the harbour's data over HTTP.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"example.org/quay/internal/store"
)

const maxBody = 1 << 20

// Audit notes who changed what.
type Audit interface {
	Record(ctx context.Context, action string, id int64)
}

type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// handle turns what a handler returns into a status and a text.
func handle(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		var se *statusError
		switch {
		case err == nil:
		case errors.As(err, &se):
			http.Error(w, se.text, se.status)
		case errors.Is(err, store.ErrNotFound):
			http.Error(w, "not found", http.StatusNotFound)
		default:
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	})
}

func pathID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, badRequest("%q is no id", r.PathValue("id"))
	}
	return id, nil
}

func pageSize(q url.Values) int {
	n, _ := strconv.Atoi(q.Get("limit"))
	return n
}

func parseRange(from, to string) (time.Time, time.Time, error) {
	a, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return a, a, err
	}
	b, err := time.Parse(time.RFC3339, to)
	return a, b, err
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(v)
}
`
	system = `You are a coding agent that works in a user's repository with the tools below. The working directory is /home/mira/quay, a git repository on branch main; the platform is linux and the date is 2026-03-02.

Do what was asked, nothing more. Read a file before you change it. Look for what exists before you write something new: this project has its own helpers and its own words for things. Keep to the style of the code around you.

Edits replace an exact piece of a file. The old text must occur once in the file as it is now; quote enough lines around it to make it unique. Prefer editing a file to writing it anew.

Run the tests after a change, first those of the package you changed, then all of them. When a test fails, find out why before you change anything. Never change a test only to make it pass; say so if you think that a test is wrong.

Do not commit, push or change the configuration of git unless the user asks. Never write secrets into files. Ask when a request can be understood in two ways that lead to different work, and otherwise go on.

Answer briefly: what you did, where, and what is left open. Refer to places as path:line so that the user can jump there.`
)

// tools are the definitions of the agent's tools, as the client sends them.
const tools = `[
{"name":"Read","description":"Reads a file. Lines are numbered from 1. Without offset and limit the whole file is returned, up to 2000 lines. Read a file before you edit it.","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"The file to read"},"offset":{"type":"integer","description":"The line to start from"},"limit":{"type":"integer","description":"How many lines to read"}},"required":["file_path"]}},
{"name":"Edit","description":"Replaces old_string, which must occur exactly once in the file, by new_string. Quote the old text exactly as it stands in the file, without line numbers.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"}},"required":["file_path","old_string","new_string"]}},
{"name":"Write","description":"Writes a file, replacing what was there.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}},
{"name":"Grep","description":"Searches the files of the repository for a regular expression and returns matching lines as path:line:text.","input_schema":{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"Folder or file to search in"}},"required":["pattern"]}},
{"name":"Bash","description":"Runs a command in the repository and returns its output. A command that fails returns its exit code and output as an error.","input_schema":{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string","description":"What it does, in a few words"},"timeout":{"type":"integer"}},"required":["command"]}}
]`
