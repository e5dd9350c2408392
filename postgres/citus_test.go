package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/storage"
)

// fewShards makes tests faster: each query across sessions asks all shards.
const fewShards = 2

// emptied returns the address of a node after the tables of the store were emptied.
func emptied(t testing.TB, c *pgtest.Cluster) string {
	t.Helper()
	c.Exec(t, pgtest.Coordinator, `truncate furl.`+strings.Join(tables, ", furl."))
	return c.URL(pgtest.Coordinator)
}

// TestCitusConformance checks the guarantees of the interfaces on a cluster.
func TestCitusConformance(t *testing.T) {
	c := pgtest.Citus(t)
	racetest.Checks(t, 2)
	reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	furltest.TestStore(t, func(t testing.TB) storage.Store {
		return reopen(t, emptied(t, c), nil)
	}, &furltest.Options{Reopen: func(t testing.TB, s storage.Store) storage.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return reopen(t, c.URL(pgtest.Coordinator), nil)
	}})
}

// Each writing operation on a session is one command to one node, and prepares
// no transaction. The servers log the commands that they send to each other.
func TestCitusCommands(t *testing.T) {
	c := pgtest.Citus(t)
	reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	// The workers would log what a function sends to another node.
	for _, node := range []string{pgtest.Worker1, pgtest.Worker2} {
		for _, setting := range []string{"citus.log_remote_commands = on", "log_min_messages = notice"} {
			name, _, _ := strings.Cut(setting, " ")
			c.Exec(t, node, "alter system set "+setting)
			t.Cleanup(func() {
				c.Exec(t, node, "alter system reset "+name)
				c.Exec(t, node, "select pg_reload_conf()")
			})
		}
		c.Exec(t, node, "select pg_reload_conf()")
	}
	const logging = "-c%20citus.log_remote_commands%3Don%20-c%20log_min_messages%3Dnotice"
	s := reopen(t, c.URL(pgtest.Coordinator)+"&options="+logging, &Options{MaxConns: 1})
	logs := &commandLogs{c: c, at: map[string]int64{}}
	for i := range 7 { // a prepared statement might get another plan from the sixth time on
		key := furl.SessionKey{Tenant: "t", Session: furl.SessionID(fmt.Sprint("s", i))}
		records := talk(t, "x", 40, 400)
		record := func(from, to int, contents ...[]byte) func() error {
			return func() error {
				return s.Append(t.Context(), key, storage.Batch{Records: records[from:to], Contents: contents, Meta: &storage.Meta{Title: fmt.Sprint(to)}})
			}
		}
		page := storage.IndexPage{Bucket: 1, Segment: 7, Data: []byte("page")}
		vector := storage.Vector{Content: furl.DigestOf([]byte(key.Session)), Data: []byte("vector")}
		for _, tt := range []struct {
			name, want string
			do         func() error
		}{
			{"the first append", "furl.append", record(0, 1)},
			{"an append", "furl.append", record(1, 2)},
			{"an append again", "furl.append", record(1, 2)},
			{"an append with contents", "furl.append", record(2, 4, []byte("a tool"), []byte("another"))},
			{"a batch", "furl.append", record(4, 40)},
			{"metadata", "UPDATE furl.sessions_", func() error {
				return s.Append(t.Context(), key, storage.Batch{Meta: &storage.Meta{Title: "a title"}})
			}},
			{"index pages", "furl.write_index", func() error {
				return s.WriteIndex(t.Context(), key, storage.IndexWrite{To: 3, Put: []storage.IndexPage{page, {Bucket: 2, Segment: 7}}})
			}},
			{"a merge of index pages", "furl.write_index", func() error {
				return s.WriteIndex(t.Context(), key, storage.IndexWrite{After: 3, To: 4, Drop: []uint64{7}, Put: []storage.IndexPage{{Bucket: 1, Segment: 8}}})
			}},
			{"a rewrite", "furl.rewrite", func() error {
				return s.Rewrite(t.Context(), key, storage.Rewrite{Records: 40, Put: []furl.Record{replaced(records[3], "[redacted]")}, Contents: [][]byte{[]byte("a tool")}})
			}},
			{"vectors", "furl.put_vectors", func() error { return s.PutVectors(t.Context(), key, "m", []storage.Vector{vector}) }},
			{"a deletion", "furl.delete_session", func() error { return s.delete(t.Context(), key) }},
		} {
			logs.sent(t)
			if err := tt.do(); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			var writes []string
			for _, command := range logs.sent(t) {
				// A repetition reads what is there; vectors that other sessions have are read first.
				if read := regexp.MustCompile(`^(SELECT|WITH)\b.* FROM .*furl\.\w+_\d`).MatchString(command); !read {
					writes = append(writes, command)
				}
			}
			if len(writes) != 1 || !strings.Contains(writes[0], tt.want) {
				t.Errorf("%s of session %d sends %d commands to nodes, want one with %s:\n%s", tt.name, i, len(writes), tt.want, strings.Join(writes, "\n"))
			}
		}
		if err := record(0, 1)(); err != nil {
			t.Fatal(err)
		}
		logs.sent(t)
		if _, err := storage.Info(t.Context(), s, key); err != nil {
			t.Fatal(err)
		}
		if sent := logs.sent(t); len(sent) != 1 {
			t.Errorf("the description of session %d takes %d commands to nodes, want 1:\n%s", i, len(sent), strings.Join(sent, "\n"))
		}
	}
}

// A ping reads no shard, which a list of sessions does with each. It succeeds while one node
// is lost, since the sessions of the others can be used, and fails without the last one or
// the coordinator.
func TestCitusPing(t *testing.T) {
	c := pgtest.Citus(t)
	reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	const logging = "-c%20citus.log_remote_commands%3Don%20-c%20log_min_messages%3Dnotice"
	s := reopen(t, c.URL(pgtest.Coordinator)+"&options="+logging, &Options{MaxConns: 1})
	logs := &commandLogs{c: c, at: map[string]int64{}}
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // of a busy machine; idle, the slowest takes 1.4 s
		defer cancel()
		return s.Ping(ctx)
	}
	logs.sent(t)
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	if sent := logs.sent(t); len(sent) != 0 {
		t.Errorf("a ping reads tables of the nodes:\n%s", strings.Join(sent, "\n"))
	}
	for _, err := range s.Sessions(t.Context(), "", storage.SessionQuery{Hint: "ping", Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if sent := logs.sent(t); len(sent) != fewShards {
		t.Errorf("a lookup takes %d commands to nodes, one for each of %d shards:\n%s", len(sent), fewShards, strings.Join(sent, "\n"))
	}
	within := func(limit time.Duration, what string, lost bool) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if err = ping(); (err != nil) == lost {
				return
			}
		}
		t.Errorf("%s: for %v a ping returns %v", what, limit, err)
	}
	s = reopen(t, c.URL(pgtest.Coordinator), nil) // one connection would still be occupied by a node that hangs
	still := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if err := ping(); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
		}
	}
	c.Kill(t, pgtest.Worker2)
	still("one of two workers is killed")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, err := range s.Sessions(ctx, "", storage.SessionQuery{}) {
		if err == nil {
			t.Error("the sessions of a killed worker were listed")
		}
	}
	still("one of two workers is killed, and reads wait for it")
	resume := c.Hang(t, pgtest.Worker1)
	within(30*time.Second, "the other one hangs", true)
	resume()
	within(30*time.Second, "the worker goes on", false)
	c.Up(t, pgtest.Worker2)
	still("both workers are back")
	resume = c.Hang(t, pgtest.Worker1)
	still("one of two workers hangs")
	resume()
	c.Kill(t, pgtest.Coordinator)
	within(30*time.Second, "the coordinator is killed", true)
	c.Up(t, pgtest.Coordinator)
	within(time.Minute, "the coordinator is back", false)
}

// replaced is a record with another text and the same digest.
func replaced(r furl.Record, text string) furl.Record {
	m := furl.TextMessage(furl.RoleUser, text)
	m.Raw = []byte(`{"role":"user","content":"` + text + `"}`)
	r.Body = m
	return r
}

// After a rewrite on Citus a session has the same records, contents, metadata and counts as
// after one on a plain server. Records that share a body with a replaced one keep theirs.
func TestCitusRewrite(t *testing.T) {
	c := pgtest.Citus(t)
	plain, cluster := reopen(t, pgtest.URL(t), nil), reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	key := furl.SessionKey{Tenant: "t", Session: "s"}
	records := talk(t, "x", 6, 3000)
	for i := 3; i < 6; i++ { // share the body of record 2
		records[i].Body = records[1].Body
	}
	kept, dropped := []byte("kept"), []byte("dropped")
	for _, s := range []*Store{plain, cluster} {
		if err := s.Append(t.Context(), key, storage.Batch{Records: records, Contents: [][]byte{kept, dropped}, Meta: &storage.Meta{Title: "a secret"}}); err != nil {
			t.Fatal(err)
		}
		if err := s.WriteIndex(t.Context(), key, storage.IndexWrite{To: 3, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte("secret")}}}); err != nil {
			t.Fatal(err)
		}
		w := storage.Rewrite{
			Records: 6, Put: []furl.Record{replaced(records[1], "[redacted]"), replaced(records[4], "[also redacted]")},
			DropContents: []furl.Digest{furl.DigestOf(dropped)}, Contents: [][]byte{[]byte("added")},
			Meta: &storage.Meta{Title: "[redacted]"}, MetaWas: &storage.Meta{Title: "a secret"},
		}
		for range 2 { // the second as after a lost response
			if err := s.Rewrite(t.Context(), key, w); err != nil {
				t.Fatal(err)
			}
		}
		w.Records = 5
		if err := s.Rewrite(t.Context(), key, w); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("a rewrite of a session that has grown: %v", err)
		}
		w.Records, w.MetaWas, w.Meta = 6, &storage.Meta{Title: "other"}, &storage.Meta{Title: "another"}
		if err := s.Rewrite(t.Context(), key, w); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("a rewrite with other metadata: %v", err)
		}
		w.MetaWas, w.Put = nil, []furl.Record{{Seq: 2, Parent: 1, Body: &furl.Head{From: 1}}}
		if err := s.Rewrite(t.Context(), key, w); err == nil {
			t.Error("a message was replaced by a record of another kind")
		}
		if err := s.Rewrite(t.Context(), furl.SessionKey{Session: "none"}, w); !errors.Is(err, storage.ErrNoSession) {
			t.Errorf("a rewrite of no session: %v", err)
		}
		healthy(t, s)
	}
	state := func(s *Store) (text string) {
		for _, r := range read(t, s, key, 0) {
			text += encoded(t, r) + "\n"
		}
		ids, err := s.ContentIDs(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for info, err := range s.Sessions(t.Context(), "t", storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprint(info.Title, info.Records, info.Messages, info.Bytes)
		}
		at, err := s.Indexed(t.Context(), key)
		return text + fmt.Sprint(ids, at, err)
	}
	if got, want := state(cluster), state(plain); got != want || strings.Contains(got, "secret") || strings.Count(got, "[also redacted]") != 2 /* text and bytes of one message */ {
		t.Errorf("the cluster has\n%s\nand a plain server\n%s", got, want)
	}
}

// The keys of tenants are the same on all nodes, and are compared and set at once.
func TestCitusKeys(t *testing.T) {
	c := pgtest.Citus(t)
	s := reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	other := reopen(t, c.URL(pgtest.Worker1), nil)
	set := func(s *Store, was, is string, want error) {
		t.Helper()
		bytes := func(text string) []byte {
			if text == "" {
				return nil
			}
			return []byte(text)
		}
		if err := s.SetTenantKeys(t.Context(), "t", bytes(was), bytes(is)); !errors.Is(err, want) {
			t.Errorf("set keys %q in place of %q: %v", is, was, err)
		}
	}
	set(s, "old", "new", furl.ErrConflict)
	set(s, "", "first", nil)
	set(other, "", "other", furl.ErrConflict)
	set(other, "first", "second", nil)
	set(s, "first", "third", furl.ErrConflict)
	for _, s := range []*Store{s, other} {
		keys, err := s.TenantKeys(t.Context(), "t")
		tenants, listed := s.KeyTenants(t.Context())
		if err != nil || listed != nil || string(keys) != "second" || !slices.Equal(tenants, []furl.Tenant{"t"}) {
			t.Errorf("keys %q of %v: %v, %v", keys, tenants, err, listed)
		}
	}
	set(s, "first", "", furl.ErrConflict)
	set(other, "second", "", nil)
	if keys, err := s.TenantKeys(t.Context(), "t"); keys != nil || err != nil {
		t.Errorf("destroyed keys: %q, %v", keys, err)
	}
}

// The documented rights are enough: a role that is not a superuser creates the store,
// and one that may only read and write rows uses it.
func TestCitusRoles(t *testing.T) {
	c := pgtest.Citus(t)
	as := func(role, node string) string {
		return strings.Replace(c.URL(node), "postgres@", role+"@", 1)
	}
	drop := func() {
		c.Empty(t)
		c.Exec(t, pgtest.Coordinator, `do $$ begin
			if exists (select from pg_roles where rolname = 'furl_owner') then revoke create on database postgres from furl_owner; end if; end $$`)
		c.Exec(t, pgtest.Coordinator, `drop role if exists furl_owner, furl_gateway`)
	}
	drop()
	t.Cleanup(drop)
	c.Exec(t, pgtest.Coordinator, `create role furl_owner login`)
	c.Exec(t, pgtest.Coordinator, `create role furl_gateway login`)
	if _, err := Open(t.Context(), as("furl_owner", pgtest.Coordinator), nil); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Fatalf("a role without rights created the store: %v", err)
	}
	c.Exec(t, pgtest.Coordinator, `grant create on database postgres to furl_owner`)
	owner := reopen(t, as("furl_owner", pgtest.Coordinator), &Options{Partitions: fewShards})
	if _, err := Open(t.Context(), as("furl_gateway", pgtest.Coordinator), nil); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Fatalf("a role without rights opened the store: %v", err)
	}
	for _, grant := range []string{
		`grant usage on schema furl to furl_gateway`,
		`grant select, insert, update, delete on all tables in schema furl to furl_gateway`,
	} {
		c.Exec(t, pgtest.Coordinator, grant)
	}
	records := talk(t, "x", 12, 1000)
	for name, s := range map[string]*Store{
		"owner": owner, "gateway": reopen(t, as("furl_gateway", pgtest.Coordinator), nil), "worker": reopen(t, as("furl_gateway", pgtest.Worker2), nil),
	} {
		for i := range 4 {
			key := furl.SessionKey{Tenant: "t", Session: furl.SessionID(fmt.Sprint(name, i))}
			appendAll(t, s, key, records)
			if got := read(t, s, key, 0); len(got) != len(records) {
				t.Errorf("%s: read %d records", name, len(got))
			}
			if err := s.WriteIndex(t.Context(), key, storage.IndexWrite{To: 3, Put: []storage.IndexPage{{Bucket: 1, Segment: 1, Data: []byte("page")}}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.PutVectors(t.Context(), key, "m", []storage.Vector{{Content: furl.DigestOf([]byte("c")), Data: []byte("v")}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.Rewrite(t.Context(), key, storage.Rewrite{Records: 12, Put: []furl.Record{replaced(records[3], "[redacted]")}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.Scrub(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found, err := s.Match(t.Context(), "t", []furl.Digest{records[5].Chain}, 2); err != nil || len(found) != 2 {
			t.Errorf("%s: matched %v, %v", name, found, err)
		}
		if err := s.SetTenantKeys(t.Context(), furl.Tenant(name), nil, []byte("keys")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Stats(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Watch(t.Context(), furl.SessionKey{Tenant: "t"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.survey(t.Context())
		if s.nodes.some.Load() || len(s.nodes.shards) != fewShards {
			t.Errorf("%s: does not know the nodes", name)
		}
		healthy(t, s)
		if err := s.Delete(t.Context(), furl.SessionKey{Tenant: "t", Session: furl.SessionID(name + "0")}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// commandLogs reads from the logs of a cluster what nodes send to each other.
type commandLogs struct {
	c  *pgtest.Cluster
	at map[string]int64
}

// sent returns the commands of transactions and of the store since the last call.
func (l *commandLogs) sent(t *testing.T) (commands []string) {
	t.Helper()
	for _, node := range []string{pgtest.Coordinator, pgtest.Worker1, pgtest.Worker2} {
		file, err := os.Open(l.c.LogFile(node))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fresh, err := io.ReadAll(io.NewSectionReader(file, l.at[node], 1<<40))
		if err != nil {
			t.Fatal(err)
		}
		l.at[node] += int64(len(fresh))
		for line := range strings.Lines(string(fresh)) {
			_, command, ok := strings.Cut(line, "NOTICE:  issuing ")
			// The nodes also look for deadlocks and forgotten transactions.
			if ok && regexp.MustCompile(`furl\.|^(BEGIN|COMMIT|PREPARE|ROLLBACK)\b`).MatchString(command) {
				commands = append(commands, fmt.Sprintf("%.200s", command))
			}
		}
	}
	return commands
}

// Stores of earlier versions and of a plain server are converted with all their content:
// the oldest, the first with functions, and the newest. TestFormats has the others.
func TestCitusFormats(t *testing.T) {
	c := pgtest.Citus(t)
	for _, v := range []int{1, 4, version} {
		name := fmt.Sprintf("v%d.sql", v)
		t.Run(name, func(t *testing.T) {
			c.Empty(t)
			testFormat(t, filepath.Join("testdata", name), c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
		})
	}
	// A store that was distributed at version 4 gets the table and the function of version 5.
	for _, statement := range []string{`drop table furl.tenant_keys`, `drop function furl.rewrite`, `update furl.format set version = 4`} {
		c.Exec(t, pgtest.Coordinator, statement)
	}
	s := reopen(t, c.URL(pgtest.Coordinator), nil)
	healthy(t, s)
	if keys, err := s.TenantKeys(t.Context(), "t"); keys != nil || err != nil {
		t.Errorf("keys %q, %v", keys, err)
	}
}

// A check reports what is wrong with the cluster.
func TestCitusCheck(t *testing.T) {
	c := pgtest.Citus(t)
	s := reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	key := furl.SessionKey{Session: "s"}
	appendAll(t, s, key, talk(t, "x", 40, 3000))
	healthy(t, s)
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Total < 60_000 || stats.Records != 40 {
		t.Errorf("stats do not have the shards' bytes: %+v, %v", stats, err)
	}
	problems := func() (texts []string) {
		t.Helper()
		for p, err := range s.Check(t.Context(), false) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, p.Text)
		}
		return texts
	}
	c.Exec(t, pgtest.Coordinator, `create table intruder (session text collate "C" primary key)`)
	t.Cleanup(func() { c.Exec(t, pgtest.Coordinator, `drop table intruder`) })
	c.Exec(t, pgtest.Coordinator, `select create_distributed_table('intruder', 'session', colocate_with => 'furl.sessions')`)
	c.Exec(t, pgtest.Coordinator, `select undistribute_table('furl.vectors')`)
	c.Exec(t, pgtest.Coordinator, `drop function furl.put_vectors(bytea, text, bytea, bytea[], bytea[], boolean)`)
	c.Exec(t, pgtest.Coordinator, `create function furl.put_vectors(_tenant bytea, _session text, _model bytea, _content bytea[], _data bytea[], _at_once boolean)
		returns boolean language sql as 'select true'`)
	texts := problems()
	for _, want := range []string{"table furl.vectors is not distributed by session", "table intruder is in the colocation group", "function furl.put_vectors is not distributed"} {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("the check does not report %q: %q", want, texts)
		}
	}
}

// Another node than the coordinator opens an existing store, writes to it, and its
// watchers learn of appends, which are announced on another node.
func TestCitusOtherNode(t *testing.T) {
	c := pgtest.Citus(t)
	if _, err := Open(t.Context(), c.URL(pgtest.Worker1), nil); err == nil || !strings.Contains(err.Error(), "coordinator") {
		t.Fatalf("a worker created a store: %v", err)
	}
	s := reopen(t, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
	other := reopen(t, c.URL(pgtest.Worker1), &Options{Poll: 20 * time.Millisecond})
	for i := range 4 { // on both workers
		key := furl.SessionKey{Tenant: "t", Session: furl.SessionID(fmt.Sprint("s", i))}
		records := talk(t, "x", 3, 400)
		appendAll(t, s, key, records[:1])
		one, err := other.Watch(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		all, err := other.Watch(t.Context(), furl.SessionKey{Tenant: "t"})
		if err != nil {
			t.Fatal(err)
		}
		appendAll(t, s, key, records[1:2])
		follow(t, other, one, key, 2, "the session")
		hears(t, all, "the tenant")
		appendAll(t, other, key, records[2:])
		if err := s.Append(t.Context(), key, storage.Batch{Records: talk(t, "y", 3, 400)[2:]}); !errors.Is(err, furl.ErrConflict) {
			t.Errorf("another record in its place: %v", err)
		}
		if err := other.WriteIndex(t.Context(), key, storage.IndexWrite{To: 3}); err != nil {
			t.Error(err)
		}
		if err := other.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	healthy(t, other)
}
