package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
)

// fillSQL adds $1 sessions of 100 records from number $2 on, with their search index. Rows
// have the sizes of those of an agent that reads files. The server makes them itself, which
// takes a fraction of the time of sending them.
const fillSQL = `
with n as (select generate_series($2::bigint, $2 + $1::bigint - 1) as i), added as (
	insert into furl.sessions (tenant, session, life, records, messages, bytes, indexed, created, updated, hint, meta)
	select '\x', 'filled-' || i, i, 100, 60, 60000, 100, now(), now() - i * interval '1 second', i, convert_to('{"title":"filled ' || i || '","model":"claude-sonnet-4-5","format":"anthropic"}', 'UTF8')
	from n
), paged as (
	insert into furl.pages (tenant, session, bucket, segment, data)
	select '\x', 'filled-' || i, bucket, 100, decode(repeat(md5(i || ' ' || bucket), 118), 'hex')
	from n, unnest(array[0, 1, 2, 17, 18, 19]) bucket
)
insert into furl.records (tenant, session, seq, stored, size, sum, chain, head, body)
select '\x', 'filled-' || i, seq, now() - i * interval '1 second', 900, 0,
	case when seq % 5 < 3 then sha256(convert_to(i || ' ' || seq, 'UTF8')) end, decode(repeat('ab', 90), 'hex'), case when seq % 5 < 3 then decode(repeat(md5(i || ' ' || seq), 8), 'hex') end
from n, generate_series(1, 100) seq`

// While rows are added, their tables have no indexes: making these at the end takes a fraction
// of the time of extending them with rows in no order.
const (
	withoutIndexes = `
		alter table furl.records drop constraint records_pkey;
		drop index furl.records_chain;
		alter table furl.pages drop constraint pages_pkey`
	withIndexes = `
		set maintenance_work_mem = '512MB';
		alter table furl.records add primary key (tenant, session, seq);
		create index records_chain on furl.records (tenant, chain, stored desc, seq desc) where chain is not null;
		alter table furl.pages add primary key (tenant, session, bucket, segment)`
)

// statements are what requests, lists, searches and the indexer ask of the store, as package
// postgres writes them.
var statements = []struct{ name, sql string }{
	{"Match", `
		select m.session, m.seq, m.chain from (select unnest(array[sha256('1 1'), sha256('1 2')]) as chain) c
		cross join lateral (
			select r.session, r.seq, r.chain, r.stored from furl.records r
			where r.tenant = '\x' and r.chain = c.chain order by r.stored desc, r.seq desc limit 64
		) m order by m.stored desc, m.seq desc, m.session limit 64`},
	{"Read", `select seq, head, size, sum, body from furl.records where tenant = '\x' and session = 'filled-17' and seq > 90 order by seq`},
	{"Append", `
		select furl.append('\x', 'filled-17', 100, '{0}', '{4711}', '{900}', '{0}',
			array[sha256('new')], array[decode(repeat('ab', 90), 'hex')], array[decode(repeat(md5('new'), 8), 'hex')],
			1, 1, 900, null, null, null, 1, null, null, null, true)`},
	{"Sessions by hint", `select session, meta from furl.sessions where tenant = '\x' and hint = 17 order by updated desc, session`},
	{"Search in a session", `
		select p.session, p.segment, p.data from furl.pages p
		where p.tenant = '\x' and p.session = 'filled-17' and p.bucket = 17 order by p.segment < 0, p.segment limit 256`},
	{"Search in all sessions", `
		select s.session, p.segment, p.data from (select session from furl.sessions where tenant = '\x' and session >= '' order by session) s
		cross join lateral (
			select p.segment, p.data from furl.pages p where p.tenant = '\x' and p.session = s.session and p.bucket = 17
			order by p.segment < 0, p.segment offset 0
		) p order by s.session, p.segment < 0, p.segment`},
	{"Sessions, newest 50", `select session, meta from furl.sessions where tenant = '\x' and session >= '' and session < '~' order by updated desc, session limit 50`},
	{"Unindexed", `select session, meta from furl.sessions where tenant = '\x' and indexed < records order by updated desc, session`},
}

// BenchmarkRows counts the pages that each statement reads as the store grows, and
// measures the time that the server needs. A cost that does not grow has the same number
// in each store. FURL_FLEET_ROWS is the number of records of the largest store
// (10,000,000), which needs about 7 GB of disk.
func BenchmarkRows(b *testing.B) {
	most := 10_000_000
	if n, err := strconv.Atoi(os.Getenv("FURL_FLEET_ROWS")); err == nil {
		most = n
	}
	at := pgtest.Start(b).URL("postgres")
	store, err := postgres.Open(b.Context(), at, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	conn, err := pgx.Connect(b.Context(), at)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context()))
	sessions := 0
	for rows := most / 100; rows <= most; rows *= 10 {
		run := func(sql string, args ...any) {
			if _, err := conn.Exec(b.Context(), sql, args...); err != nil {
				b.Fatal(err)
			}
		}
		run(withoutIndexes)
		for sessions < rows/100 {
			n := min(rows/100-sessions, 10_000)
			run(fillSQL, n, sessions+1)
			sessions += n
		}
		run(withIndexes)
		run("vacuum analyze")
		for _, s := range statements {
			b.Run(fmt.Sprintf("%s/records=%d", strings.ReplaceAll(s.name, " ", "_"), rows), func(b *testing.B) {
				c := costOf(b, conn, s.sql)
				b.ReportMetric(c.pages, "pages/op")
				b.ReportMetric(c.ms, "server-ms/op")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cost is what a statement costs the server.
type cost struct {
	pages float64 // of 8 KiB, from memory or disk
	ms    float64
}

// costOf runs a statement some times, undoes it, and returns the cost of the fastest run.
func costOf(b *testing.B, conn *pgx.Conn, sql string) (least cost) {
	for n := range 7 {
		var text []byte
		tx, err := conn.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := tx.QueryRow(b.Context(), "explain (analyze, buffers, timing off, format json) "+sql).Scan(&text); err != nil {
			b.Fatal(err)
		}
		if err := tx.Rollback(b.Context()); err != nil {
			b.Fatal(err)
		}
		var plans []struct {
			Plan struct {
				Hit  float64 `json:"Shared Hit Blocks"`
				Read float64 `json:"Shared Read Blocks"`
			}
			Time float64 `json:"Execution Time"`
		}
		if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
			b.Fatalf("unexpected plan: %v\n%s", err, text)
		}
		if c := (cost{plans[0].Plan.Hit + plans[0].Plan.Read, plans[0].Time}); n == 0 || c.ms < least.ms {
			least = c
		}
	}
	return least
}
