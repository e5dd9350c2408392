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

	"github.com/furlhq/furl/internal/pgtest"
	"github.com/furlhq/furl/postgres"
)

// fillSQL adds $1 sessions of 100 records from number $2 on. Records have the sizes of
// those of an agent that reads files.
const fillSQL = `
with n as (select generate_series($2::bigint, $2 + $1::bigint - 1) as i), added as (
	insert into furl.sessions (tenant, session, life, records, messages, bytes, indexed, created, updated, hint, meta)
	select '\x', 'filled-' || i, i, 100, 60, 60000, 100, now(), now() - i * interval '1 second', i, convert_to('{"title":"filled ' || i || '","model":"claude-sonnet-4-5","format":"anthropic"}', 'UTF8')
	from n
)
insert into furl.records (tenant, session, seq, stored, size, sum, chain, head, body)
select '\x', 'filled-' || i, seq, now() - i * interval '1 second', 900, 0,
	case when seq % 5 < 3 then sha256(convert_to(i || ' ' || seq, 'UTF8')) end, decode(repeat('ab', 90), 'hex'), case when seq % 5 < 3 then decode(repeat(md5(i || ' ' || seq), 8), 'hex') end
from n, generate_series(1, 100) seq`

// statements are what requests, lists and the indexer ask of the store, as package
// postgres writes them. The search index is not filled, so searches are not among them.
var statements = []struct{ name, sql string }{
	{"Match", `
		select m.session, m.seq, m.chain from (select unnest(array[sha256('1 1'), sha256('1 2')]) as chain) c
		cross join lateral (
			select r.session, r.seq, r.chain, r.stored from furl.records r
			where r.tenant = '\x' and r.chain = c.chain order by r.stored desc, r.seq desc limit 64
		) m order by m.stored desc, m.seq desc, m.session limit 64`},
	{"Read", `select seq, head, size, sum, body from furl.records where tenant = '\x' and session = 'filled-17' and seq > 90 order by seq`},
	{"Append", `update furl.sessions set records = records, updated = clock_timestamp() where tenant = '\x' and session = 'filled-17' and records = 100`},
	{"Sessions by hint", `select session, meta from furl.sessions where tenant = '\x' and hint = 17 order by updated desc, session`},
	{"Sessions, newest 50", `select session, meta from furl.sessions where tenant = '\x' and session >= '' and session < '~' order by updated desc, session limit 50`},
	{"Unindexed", `select session, meta from furl.sessions where tenant = '\x' and indexed < records order by updated desc, session`},
}

// BenchmarkRows counts the pages that each statement reads as the store grows. A cost
// that does not grow has the same number in each store. FURL_FLEET_ROWS is the number of
// records of the largest store (10,000,000).
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
		for sessions < rows/100 {
			n := min(rows/100-sessions, 10_000)
			if _, err := conn.Exec(b.Context(), fillSQL, n, sessions+1); err != nil {
				b.Fatal(err)
			}
			sessions += n
		}
		if _, err := conn.Exec(b.Context(), "vacuum analyze"); err != nil {
			b.Fatal(err)
		}
		for _, s := range statements {
			b.Run(fmt.Sprintf("%s/records=%d", strings.ReplaceAll(s.name, " ", "_"), rows), func(b *testing.B) {
				pages := 0.0
				for range b.N {
					pages = pagesOf(b, conn, s.sql)
				}
				b.ReportMetric(pages, "pages/op")
			})
		}
	}
}

// pagesOf returns how many pages of 8 KiB a statement reads, from memory or disk.
func pagesOf(b *testing.B, conn *pgx.Conn, sql string) float64 {
	var text []byte
	if err := conn.QueryRow(b.Context(), "explain (analyze, buffers, timing off, format json) "+sql).Scan(&text); err != nil {
		b.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  float64 `json:"Shared Hit Blocks"`
			Read float64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		b.Fatalf("unexpected plan: %v\n%s", err, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
