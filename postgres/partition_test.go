package postgres

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// A statement about one session uses one partition, so that on a distributed
// engine it runs on one server; statements about a tenant use all.
func TestPartitions(t *testing.T) {
	s := open(t, &Options{Partitions: 4})
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	appendAll(t, s, key, talk(t, "x", 3, 400))
	tenant, session := []byte(key.Tenant), string(key.Session)
	bytes, none := [][]byte{{1}}, []int64{1}
	small := []int32{1}
	appending := []any{tenant, session, int64(3), none, none, small, small, bytes, bytes, bytes, 1, 1, 1, []byte(nil), (*int64)(nil)}
	for _, tt := range []struct {
		name string
		want int
		sql  string
		args []any
	}{
		{"extend", 1, extendSQL, append(slices.Clone(appending), []byte(nil))},
		{"create", 1, createSQL, append(slices.Clone(appending), int64(1))},
		{"meta", 1, metaSQL, []any{tenant, session, []byte("{}"), (*int64)(nil), []byte(nil)}},
		{"range", 1, rangeSQL, []any{tenant, session, 0, 9}},
		{"page", 1, pageSQL, []any{tenant, session, 0, 10, 1000}},
		{"pages", 1, pagesSQL, []any{tenant, session, 1, 0, 10}},
		{"content", 1, contentSQL, []any{tenant, session, []byte{1}}},
		{"vectors", 1, vectorsSQL, []any{tenant, session, []byte("m"), []byte{}, 10}},
		{"delete", 1, `delete from furl.records where tenant = $1 and session = $2`, []any{tenant, session}},
		{"match", 4, matchSQL, []any{tenant, bytes, 5}},
		{"sessions", 4, sessionsSQL, []any{tenant, "", nil, nil, nil}},
		{"behind", 4, unindexedSQL, []any{tenant}},
		{"all pages", 4, allPagesSQL, []any{tenant, "", 1, 0, 10}},
		{"all vectors", 4, allVectorsSQL, []any{tenant, "", []byte("m"), []byte{}, 10}},
		{"find vectors", 4, findVectorsSQL, []any{tenant, []byte("m"), bytes}},
	} {
		plan := explain(t, s, tt.sql, tt.args...)
		touched := map[string]bool{}
		for _, m := range regexp.MustCompile(` on (?:furl\.)?\w+_(\d+)`).FindAllStringSubmatch(plan, -1) {
			touched[m[1]] = true
		}
		// An insert is routed to the partition of its key, which the plan
		// does not show: it names the partitions that are read, here none or
		// one.
		n := len(touched)
		if strings.Contains(tt.sql, "insert into") {
			n = max(n, 1)
		}
		if n != tt.want {
			t.Errorf("%s uses the partitions %v, want %d:\n%s", tt.name, slices.Sorted(maps.Keys(touched)), tt.want, plan)
		}
	}
}

// explain returns the plan of a statement.
func explain(t *testing.T, s *Store, sql string, args ...any) string {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), "explain (costs off) "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return strings.Join(lines, "\n")
}

// A store keeps the number of partitions with which it was created.
func TestPartitionsKept(t *testing.T) {
	s := open(t, &Options{Partitions: 3})
	again := reopen(t, s.pool.Config().ConnString(), &Options{Partitions: 7})
	var n int
	if err := again.pool.QueryRow(t.Context(), `select count(*) from pg_partition_tree('furl.records') where isleaf`).Scan(&n); err != nil || n != 3 {
		t.Errorf("%d partitions, %v; want 3", n, err)
	}
	for _, n := range []int{-1, maxPartitions + 1} {
		if _, err := Open(t.Context(), s.pool.Config().ConnString(), &Options{Partitions: n}); err == nil {
			t.Errorf("%d partitions are accepted", n)
		}
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Total == 0 {
		t.Errorf("stats of partitions: %+v, %v", stats, err)
	}
}
