package search

import (
	"database/sql"
	"strings"
	"testing"
	"unicode"

	_ "modernc.org/sqlite" // the driver
)

// fts is a table of SQLite's full-text search, as one would set it up: with
// one of its tokenizers, ranked by its BM25, any word of the query.
type fts struct {
	db     *sql.DB
	insert *sql.Stmt
}

func newFTS(b *testing.B, tokenizer string) *fts {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE VIRTUAL TABLE t USING fts5(body, tokenize = '" + tokenizer + "')"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO t (rowid, body) VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	return &fts{db, insert}
}

func (f *fts) add(b *testing.B, id int, text string) {
	if _, err := f.insert.Exec(id, text); err != nil {
		b.Fatal(err)
	}
}

// search gives the ids of the best rows below a limit.
func (f *fts) search(b *testing.B, query string, below, limit int) []int {
	words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		words[i] = `"` + w + `"`
	}
	if len(words) == 0 {
		return nil
	}
	rows, err := f.db.Query("SELECT rowid FROM t WHERE t MATCH ? AND rowid < ? ORDER BY rank LIMIT ?", strings.Join(words, " OR "), below, limit)
	if err != nil {
		b.Fatalf("%q: %v", query, err)
	}
	defer rows.Close()
	var ids []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return ids
}
