package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every key of a file is either changed or kept when a gateway reads it anew.
func TestChanges(t *testing.T) {
	empty, err := Parse("a", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if live, restart := Changes(empty, empty); len(live)+len(restart) > 0 {
		t.Errorf("nothing changed, and it says %v, %v", live, restart)
	}
	full, err := Parse("b", []byte(`
policy: none
policies: {tool-age: {max_age: 9}, lean: {stages: [clip]}}
rolling_context: true
context_management_enabled: true
models: [{model: "x*", window: 9k}]
retention: {age: 9d}
embeddings: {url: "http://localhost:1/v1"}
summaries: {at_once: 9}
encryption: {key_file: master.key}
gateway: {listen: "127.0.0.1:9", tenants: true, refuse: true}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	live, restart := Changes(empty, full)
	if want := []string{"policy", "policies", "rolling_context", "context_management_enabled", "models", "retention.age", "gateway.refuse"}; !sameSet(live, want) {
		t.Errorf("live are %v, want %v", live, want)
	}
	if want := []string{"embeddings.url", "encryption.key_file", "summaries.at_once", "gateway.listen", "gateway.tenants"}; !sameSet(restart, want) {
		t.Errorf("at the next start are %v, want %v", restart, want)
	}
	// What needs a start is as it was, all else as it is.
	l, r := Changes(full.Started(empty), full)
	if len(l) != 0 || !sameSet(r, restart) {
		t.Errorf("after a reload %v and %v are left to be changed, want %v", l, r, restart)
	}
	for _, key := range atStart {
		group, name, _ := strings.Cut(key, ".")
		v := reflect.ValueOf(*full)
		if !hasKey(v, group, name) {
			t.Errorf("there is no key %s", key)
		}
	}
}

// Every key of a file either is compared between gateways, or may differ.
func TestShared(t *testing.T) {
	a, err := Parse("a", []byte("store: a.db\npolicies: {lean: {stages: [clip]}}\ngateway: {listen: \"127.0.0.1:9\", client_keys_file: a, tenants: true}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("b", []byte("store: b.db\npolicies: {lean: {stages: [mask]}}\ngateway: {listen: \"127.0.0.1:8\", client_keys_file: b, tenant_by: both}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	shared, other := a.Shared(), b.Shared()
	var differ []string
	for key := range shared {
		if shared[key] != other[key] {
			differ = append(differ, key)
		}
	}
	if want := []string{"policies", "gateway.tenants", "gateway.tenant_by"}; !sameSet(differ, want) {
		t.Errorf("different are %v, want %v", differ, want)
	}
	for _, key := range mayDiffer {
		group, name, _ := strings.Cut(key, ".")
		if !hasKey(reflect.ValueOf(*a), group, name) {
			t.Errorf("there is no key %s", key)
		}
	}
}

func hasKey(v reflect.Value, group, name string) bool {
	for field := range v.Type().Fields() {
		if field.Tag.Get("yaml") == group {
			return name == "" || hasKey(v.FieldByIndex(field.Index), name, "")
		}
	}
	return false
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
