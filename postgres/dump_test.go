package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// The documented commands, while sessions are written, make a backup that has
// everything that was acknowledged before, and no keys.
func TestDumpWhileWriting(t *testing.T) {
	url := pgtest.URL(t)
	dumpWhileWriting(t, url, reopen(t, url, nil))
}

// The same of a cluster, restored to a plain server.
func TestCitusDumpWhileWriting(t *testing.T) {
	url := pgtest.Citus(t).URL(pgtest.Coordinator)
	dumpWhileWriting(t, url, reopen(t, url, &Options{Partitions: fewShards}))
}

func dumpWhileWriting(t *testing.T, url string, st *Store) {
	ctx := context.Background()
	secret := bytes.Repeat([]byte("wrapped keys "), 20)
	if err := st.SetTenantKeys(ctx, "t", nil, secret); err != nil {
		t.Fatal(err)
	}
	records := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 60, Exchanges: true, MessageBytes: 500})
	const sessions = 3
	id := func(i int) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))} }
	var before [sessions]int
	var writers sync.WaitGroup
	half := make(chan struct{}, sessions)
	for i := range sessions {
		writers.Go(func() {
			for j := range records {
				if err := st.Append(ctx, id(i), storage.Batch{Records: records[j : j+1]}); err != nil {
					t.Error(err)
					break
				}
				if j == len(records)/2 {
					before[i] = j + 1
					half <- struct{}{}
				}
			}
		})
	}
	for range sessions {
		<-half
	}
	dump := filepath.Join(t.TempDir(), "furl.dump")
	command := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(pgtest.Tool(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	command("pg_dump", "--format=custom", "--schema=furl", "--exclude-table-data=furl.tenant_keys", "--compress=0", "--file="+dump, url)
	writers.Wait()
	if data, err := os.ReadFile(dump); err != nil || bytes.Contains(data, fmt.Appendf(nil, "%x", secret[:20])) {
		t.Errorf("the dump has keys, %v", err)
	}
	other := pgtest.URL(t)
	command("pg_restore", "--no-owner", "--dbname="+other, dump)
	back := reopen(t, other, nil)
	for i := range sessions {
		n := 0
		for r, err := range back.Read(ctx, id(i), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if m, ok := r.Body.(*furl.Message); r.Seq != records[n].Seq || r.Chain != records[n].Chain || ok && !bytes.Equal(m.Raw, records[n].Body.(*furl.Message).Raw) {
				t.Fatalf("session %d: record %d differs", i, r.Seq)
			}
			n++
		}
		if n < before[i] {
			t.Errorf("session %d has %d records, and %d were acknowledged before the dump", i, n, before[i])
		}
	}
	for p, err := range back.Check(ctx, false) {
		if err != nil || p.Session.Session != "" {
			t.Errorf("check: %+v, %v", p, err)
		}
	}
}
