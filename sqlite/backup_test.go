package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// A backup while sessions are written has everything that was acknowledged before,
// each session up to one of its records, and no keys. Restoring it gives the same.
func TestBackupWhileWriting(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	st := openAt(t, filepath.Join(dir, "furl.db"), nil)
	defer st.Close()
	secret := bytes.Repeat([]byte("the wrapped keys of a tenant "), 20)
	if err := st.SetTenantKeys(ctx, "t", nil, secret); err != nil {
		t.Fatal(err)
	}
	records := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 120, Exchanges: true, MessageBytes: 900})
	const sessions = 4
	id := func(i int) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", i))} }
	var before [sessions]int
	var writers sync.WaitGroup
	half := make(chan struct{}, sessions)
	for i := range sessions {
		writers.Go(func() {
			for j := range records {
				if err := st.Append(ctx, id(i), storage.Batch{Records: records[j : j+1]}); err != nil {
					t.Error(err)
					return
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
	backup := filepath.Join(dir, "backup.db")
	if err := st.Backup(ctx, backup); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	if err := st.Backup(ctx, backup); err == nil {
		t.Error("an existing file was overwritten")
	}
	if data, err := os.ReadFile(backup); err != nil || bytes.Contains(data, secret[:30]) {
		t.Errorf("the backup has keys, %v", err)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	restored := filepath.Join(dir, "new", "furl.db")
	if err := sqlite.RestoreBackup(ctx, backup, restored); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.RestoreBackup(ctx, backup, restored); err == nil {
		t.Error("an existing store was overwritten")
	}
	back := openAt(t, restored, nil)
	defer back.Close()
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
			t.Errorf("session %d has %d records, and %d were acknowledged before the backup", i, n, before[i])
		}
	}
	for p, err := range back.Check(ctx, false) {
		t.Errorf("check: %+v, %v", p, err)
	}
	if err := back.Append(ctx, id(9), storage.Batch{Records: records[:1]}); err != nil {
		t.Error(err)
	}
}
