package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
)

// The hash of an id is that of the server, and decides the node.
func TestHashText(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for n := range 40 {
		for _, text := range []string{strings.Repeat("s", n), "01jd5"[:n%6] + strings.Repeat("\u00fe", n)} {
			var want int32
			if err := conn.QueryRow(t.Context(), `select hashtext($1)`, text).Scan(&want); err != nil {
				t.Fatal(err)
			}
			if got := hashText(text); got != want {
				t.Errorf("hash of %q is %d, want %d", text, got, want)
			}
		}
	}
	hash := hashText("s")
	shards := []shard{{from: -1 << 31, to: hash - 1, address: "a"}, {from: hash, to: hash, address: "b"}, {from: hash + 2, to: 1<<31 - 1, address: "c"}}
	if got := homeOf(shards, "s"); got != "b" {
		t.Errorf("the session is on %q, want b", got)
	}
	for _, missing := range [][]shard{nil, slices.Delete(slices.Clone(shards), 1, 2), shards[:1]} {
		if got := homeOf(missing, furl.SessionID("s")); got != "" {
			t.Errorf("the session is on %q, want an unknown node", got)
		}
	}
}
