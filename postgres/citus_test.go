package postgres

import (
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
	"github.com/furlhq/furl/internal/pgtest"
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
	fewerChecks(t, "2")
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

// Stores of earlier versions and of a plain server are converted with all their content.
func TestCitusFormats(t *testing.T) {
	c := pgtest.Citus(t)
	files, err := filepath.Glob(filepath.Join("testdata", "v*.sql"))
	if err != nil || len(files) < version {
		t.Fatalf("there are %d dumps of %d versions: %v", len(files), version, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c.Empty(t)
			testFormat(t, file, c.URL(pgtest.Coordinator), &Options{Partitions: fewShards})
		})
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
