package gateway

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Fingerprints are equal for equal settings and the same salt, and only then.
func TestFingerprints(t *testing.T) {
	of := func(o *Options, salt string) map[string]string {
		prints, err := o.fingerprints(salt)
		if err != nil {
			t.Fatal(err)
		}
		return prints
	}
	salt := strings.Repeat("s", minSalt)
	a := &Options{Shared: map[string]string{"policy": "auto", "tenants.key": "planted", "other": "planted"}}
	b := &Options{Shared: maps.Clone(a.Shared)}
	b.Shared["policy"] = "none"
	as, bs := of(a, salt), of(b, salt)
	if as["policy"] == bs["policy"] || as["tenants.key"] != bs["tenants.key"] {
		t.Errorf("fingerprints are %v and %v", as, bs)
	}
	if as["tenants.key"] == as["other"] || as["policy"] == of(a, salt+"2")["policy"] {
		t.Errorf("a fingerprint does not depend on the name or the salt: %v", as)
	}
	if got := of(a, ""); got != nil {
		t.Errorf("without a salt there are %v", got)
	}
	for _, bad := range []string{"short", strings.Repeat("s", maxSalt+1)} {
		if _, err := a.fingerprints(bad); err == nil {
			t.Errorf("%q is a salt", bad)
		}
	}
	if got := slices.Sorted(maps.Keys(as)); !slices.Equal(got, []string{"other", "policy", "tenants.key"}) {
		t.Errorf("fingerprints of %v", got)
	}
}
