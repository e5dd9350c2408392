package access_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/access"
)

// A key is found by its secret only, and only while it is valid.
func TestKeys(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var keys []access.Key
		var secrets []string
		for range rapid.IntRange(0, 8).Draw(t, "keys") {
			name := rapid.StringMatching(`[a-z][a-z0-9.@_-]{0,20}`).Draw(t, "name")
			expires := rapid.SampledFrom([]time.Time{{}, now.Add(time.Hour), now, now.Add(-time.Hour)}).Draw(t, "expires")
			k, secret, err := access.NewKey(name+"-"+string(rune('a'+len(keys))), rapid.SampledFrom([]string{"", "acme"}).Draw(t, "tenant"), access.Scopes(rapid.IntRange(1, 15).Draw(t, "scopes")), now, expires)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "revoked") {
				k.Revoked = now
			}
			keys, secrets = append(keys, k), append(secrets, secret)
		}
		file := access.FormatKeys(keys)
		for _, s := range secrets {
			if bytes.Contains(file, []byte(s)) {
				t.Fatal("the file has a secret")
			}
		}
		again, err := access.ParseKeys(file)
		if err != nil || len(again) != len(keys) {
			t.Fatalf("the file is read as %d of %d keys, %v", len(again), len(keys), err)
		}
		found := access.NewKeys(again)
		for i, s := range secrets {
			k := found.Find(s)
			if k == nil {
				t.Fatalf("key %d is not found", i)
			}
			if diff := cmp.Diff(keys[i], *k); diff != "" {
				t.Fatalf("another key (-want +got):\n%s", diff)
			}
			ended := !k.Revoked.IsZero() || !k.Expires.IsZero() && !k.Expires.After(now)
			if err := k.Usable(now); (err != nil) != ended {
				t.Fatalf("expires %v, revoked %v: %v", k.Expires, k.Revoked, err)
			} else if e := (*access.EndedError)(nil); err != nil && (!errors.As(err, &e) || !strings.Contains(err.Error(), k.Name)) {
				t.Fatal(err)
			}
			if found.Find(s[1:]) != nil || found.Find(s+"x") != nil || found.Find("") != nil || found.Find(strings.ToUpper(s)) != nil {
				t.Fatal("another secret finds a key")
			}
		}
	})
}

// A key whose tenant would be that of the command line is refused.
func TestKeyNamedLocal(t *testing.T) {
	for _, tc := range []struct {
		name, tenant string
		ok           bool
	}{{"local", "", false}, {"ann", "local", false}, {"local", "acme", true}, {"locals", "", true}} {
		k, _, err := access.NewKey(tc.name, tc.tenant, access.Client, time.Now(), time.Time{})
		if (err == nil) != tc.ok {
			t.Errorf("key %s of tenant %q: %v", tc.name, tc.tenant, err)
		}
		if _, err := access.ParseKeys(access.FormatKeys([]access.Key{k})); tc.ok && err != nil {
			t.Errorf("read the key %s of tenant %q: %v", tc.name, tc.tenant, err)
		}
	}
}

func TestParseKeysErrors(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for in, want := range map[string]string{
		`x`: "not a file of furl keys", `{"version":2,"keys":[]}`: "version 2", `{"version":1,"keys":[],"more":1}`: "unknown field", `{"version":1,"keys":[]} x`: "data after",
		`{"version":1,"keys":[{"name":"a","sha256":"12","scopes":["read"]}]}`:                                                                "64 hexadecimal digits",
		`{"version":1,"keys":[{"name":"-a","sha256":"` + sum + `","scopes":["read"]}]}`:                                                      "invalid name of a key",
		`{"version":1,"keys":[{"name":"a","sha256":"` + sum + `","scopes":["reed"]}]}`:                                                       `unknown scope "reed"`,
		`{"version":1,"keys":[{"name":"a","sha256":"` + sum + `","scopes":[]}]}`:                                                             "has no scope",
		`{"version":1,"keys":[{"name":"a","sha256":"` + sum + `","scopes":["read"],"tenant":"local"}]}`:                                      "invalid name of a tenant",
		`{"version":1,"keys":[{"name":"a","sha256":"` + sum + `","scopes":["read"]},{"name":"a","sha256":"` + sum + `","scopes":["read"]}]}`: "two keys are named",
		`{"version":1,"keys":[{"name":"a","sha256":"` + sum + `","scopes":["read"],"expires":"soon"}]}`:                                      "not a file of furl keys",
	} {
		if _, err := access.ParseKeys([]byte(in)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), sum) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	if keys, err := access.ParseKeys([]byte(" \n")); err != nil || keys != nil {
		t.Errorf("an empty file: %v, %v", keys, err)
	}
}

func FuzzParseKeys(f *testing.F) {
	k, _, err := access.NewKey("ann", "acme", access.Client, time.Now(), time.Time{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(access.FormatKeys([]access.Key{k}))
	f.Add([]byte(`{"version":1,"keys":[{"name":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := access.ParseKeys(data)
		if err != nil {
			return
		}
		again, err := access.ParseKeys(access.FormatKeys(keys))
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%d keys become %d, %v", len(keys), len(again), err)
		}
	})
}

// The name of a tenant from outside is not that of the command line, not a flag, not a
// path and not a hashed tenant.
func TestClaimedTenant(t *testing.T) {
	for _, name := range []string{"acme", "auth0|5f7c", "ann@example.com", "CN", "urn:x:1", "_", "a/b=c+d"} {
		if got, err := access.ClaimedTenant(name); err != nil || string(got) != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "local", "-x", ".", "..", "a b", "a\nb", "a\x00", "é", strings.Repeat("0a", 16), strings.Repeat("x", 129), ".furl"} {
		if got, err := access.ClaimedTenant(name); err == nil {
			t.Errorf("%q is the tenant %q", name, got)
		}
	}
}
