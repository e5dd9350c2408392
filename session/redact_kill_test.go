package session_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

var errKilled = errors.New("killed")

// killedStore fails from its write number at on, as seen by a process that is killed
// there: before the write, or after it if late is set.
type killedStore struct {
	*sqlite.Store
	at, writes int
	late       bool
}

func (k *killedStore) write(do func() error) error {
	if k.writes++; k.writes > k.at || k.writes == k.at && !k.late {
		return errKilled
	}
	err := do()
	if k.writes == k.at {
		return errKilled
	}
	return err
}

func (k *killedStore) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	return k.write(func() error { return k.Store.Append(ctx, key, b) })
}

func (k *killedStore) Rewrite(ctx context.Context, key furl.SessionKey, w storage.Rewrite) error {
	return k.write(func() error { return k.Store.Rewrite(ctx, key, w) })
}

func (k *killedStore) Scrub(ctx context.Context) error {
	return k.write(func() error { return k.Store.Scrub(ctx) })
}

// A redaction that is killed at any of its writes is finished when it is repeated: the
// secret is gone, and the record that tells other processes is there once.
func TestKilledRedaction(t *testing.T) {
	const secret = "sk-ant-REDACTME0123456789abcdefghij"
	ctx := context.Background()
	key := furl.SessionKey{Session: "s"}
	redact := func(st storage.Store) error {
		if _, err := session.Redact(ctx, st, key, session.Redaction{Patterns: session.Credentials(), By: furl.Person}); err != nil {
			return err
		}
		return st.(storage.Rewriter).Scrub(ctx)
	}
	for at := 1; at <= 3; at++ { // the change, the record, the overwriting
		for _, late := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "furl.db")
			st, err := sqlite.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := anthropic.Codec.DecodeMessage([]byte(`{"role":"user","content":"my key is ` + secret + `"}`))
			if err != nil {
				t.Fatal(err)
			}
			log := furl.NewLog()
			if _, err := log.Append(0, furl.Record{}.At, furl.Client, m); err != nil {
				t.Fatal(err)
			}
			if err := st.Append(ctx, key, storage.Batch{Records: log.Records(0)}); err != nil {
				t.Fatal(err)
			}
			killed := &killedStore{Store: st, at: at, late: late}
			if err := redact(killed); !errors.Is(err, errKilled) {
				t.Fatalf("write %d: %v after %d writes", at, err, killed.writes)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if st, err = sqlite.Open(path, nil); err != nil {
				t.Fatal(err)
			}
			if err := redact(st); err != nil {
				t.Fatal(err)
			}
			for info, err := range st.Sessions(ctx, "", storage.SessionQuery{}) {
				if err != nil || info.Records != 2 || len(info.Redactions) != 1 || info.Redactions[0].Record != 2 {
					t.Errorf("write %d, late %v: %+v, %v", at, late, info, err)
				}
			}
			for _, suffix := range []string{"", "-wal"} {
				data, err := os.ReadFile(path + suffix)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if bytes.Contains(data, []byte("REDACTME")) {
					t.Errorf("write %d, late %v: the secret is in furl.db%s", at, late, suffix)
				}
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
