package encrypted_test

import (
	"context"
	"errors"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

var errKilled = errors.New("killed")

// killedKeys fails at its write of keys number at, as seen by a process that is killed
// there: before the write, or after it if late is set.
type killedKeys struct {
	*inmem.Store
	at, writes int
	late       bool
}

func (k *killedKeys) SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error {
	if k.writes++; k.writes > k.at || k.writes == k.at && !k.late {
		return errKilled
	}
	if err := k.Store.SetTenantKeys(ctx, tenant, was, is); err != nil || k.writes < k.at {
		return err
	}
	return errKilled
}

// A rotation of the master key that is killed at any tenant leaves every tenant
// readable with both keys, and is finished when it is repeated. Then the old key is
// not needed any more, and the new one was not before.
func TestKilledMasterRotation(t *testing.T) {
	ctx := context.Background()
	tenants := []furl.Tenant{"", "one", "two"}
	old, fresh := encrypted.NewMasterKey(), encrypted.NewMasterKey()
	records := furltest.Session(furltest.SessionOptions{Seed: 3, Messages: 4})
	read := func(st storage.Store) error {
		for _, tenant := range tenants {
			if err := first(st.Read(ctx, furl.SessionKey{Tenant: tenant, Session: "s"}, 0)); err != nil {
				return err
			}
		}
		return nil
	}
	rotate := func(l encrypted.Layer) (n int, err error) {
		for _, tenant := range tenants {
			changed, err := encrypted.RotateMaster(ctx, l, tenant)
			if err != nil {
				return n, err
			}
			if changed {
				n++
			}
		}
		return n, nil
	}
	for at := 1; at <= len(tenants); at++ {
		for _, late := range []bool{false, true} {
			inner := inmem.New()
			st := encrypted.New(inner, master(t, old))
			for _, tenant := range tenants {
				if err := st.Append(ctx, furl.SessionKey{Tenant: tenant, Session: "s"}, storage.Batch{Records: records}); err != nil {
					t.Fatal(err)
				}
			}
			killed := encrypted.New(&killedKeys{Store: inner, at: at, late: late}, master(t, fresh, old))
			if _, err := rotate(killed); !errors.Is(err, errKilled) {
				t.Fatalf("write %d: %v", at, err)
			}

			st = encrypted.New(inner, master(t, fresh, old))
			if err := read(st); err != nil {
				t.Errorf("write %d, late %v: with both keys: %v", at, late, err)
			}
			left := len(tenants) - at
			if !late {
				left++
			}
			if n, err := rotate(st); err != nil || n != left {
				t.Errorf("write %d, late %v: the second time changed %d tenants, %v; want %d", at, late, n, err, left)
			}
			for key, want := range map[string]bool{fresh: true, old: false} {
				if err := read(encrypted.New(inner, master(t, key))); (err == nil) != want {
					t.Errorf("write %d, late %v: with one key: %v", at, late, err)
				}
			}
		}
	}
}
