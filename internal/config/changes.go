package config

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// atStart are the keys that a running gateway cannot change.
var atStart = []string{"store", "embeddings", "encryption", "summaries", "telemetry", "audit", "gateway.listen", "gateway.tls", "gateway.tenants", "gateway.tenant_by"}

// Changes lists the keys in which two configurations differ: those that a
// running gateway can change, and those that it reads when it starts.
func Changes(was, is *Config) (live, restart []string) {
	for key, at := range keysOf(reflect.TypeFor[Config](), "") {
		if reflect.DeepEqual(reflect.ValueOf(*was).FieldByIndex(at).Interface(), reflect.ValueOf(*is).FieldByIndex(at).Interface()) {
			continue
		}
		group, _, _ := strings.Cut(key, ".")
		if group == "mcp" || group == "mcp_servers" { // of other commands
			continue
		}
		if slices.Contains(atStart, key) || slices.Contains(atStart, group) {
			restart = append(restart, key)
		} else {
			live = append(live, key)
		}
	}
	return live, restart
}

// keysOf yields the keys of one group, and of the groups in the file as a whole, with
// the indexes of their fields. Options of a policy count as one.
func keysOf(group reflect.Type, prefix string, at ...int) iter.Seq2[string, []int] {
	return func(yield func(string, []int) bool) {
		for i := range group.NumField() {
			field := group.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			index := append(slices.Clone(at), i)
			switch {
			case name == "" || name == "-":
			case prefix == "" && field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == group.PkgPath():
				for key, index := range keysOf(field.Type, name+".", index...) {
					if !yield(key, index) {
						return
					}
				}
			case !yield(prefix+name, index):
				return
			}
		}
	}
}

// mayDiffer are the keys, and groups of keys, in which gateways of one store may differ.
var mayDiffer = []string{
	"store", "audit", "telemetry", "chat", "mcp", "mcp_servers",
	"gateway.listen", "gateway.log", "gateway.max_body", "gateway.max_requests", "gateway.drain_delay",
	// They name files and variables. What is in these must be equal.
	"catalog", "encryption", "embeddings.key_env", "summaries.key_env", "gateway.tls",
	"gateway.client_keys_env", "gateway.client_keys_file", "gateway.keys_file", "gateway.operator_key_env", "gateway.operator_key_file",
}

// Shared returns the values that all gateways of one store should have, as JSON, by
// their keys. Contents of files and variables that the configuration names are not
// among them.
func (c *Config) Shared() map[string]string {
	shared := make(map[string]string)
	for key, at := range keysOf(reflect.TypeFor[Config](), "") {
		group, _, _ := strings.Cut(key, ".")
		if slices.Contains(mayDiffer, key) || slices.Contains(mayDiffer, group) {
			continue
		}
		text, err := json.Marshal(reflect.ValueOf(*c).FieldByIndex(at).Interface())
		if err != nil {
			panic(fmt.Sprintf("config: %s has a type that is not plain data: %v", key, err)) // TestShared has all keys
		}
		shared[key] = string(text)
	}
	return shared
}

// Started gives the configuration with the keys that a running gateway cannot
// change as another one has them, by which it was started.
func (c *Config) Started(by *Config) *Config {
	out := *c
	out.Store, out.Embeddings, out.Encryption = by.Store, by.Embeddings, by.Encryption
	out.Summaries, out.Telemetry, out.Audit = by.Summaries, by.Telemetry, by.Audit
	out.Gateway.TLS = by.Gateway.TLS
	out.Gateway.Listen, out.Gateway.Tenants, out.Gateway.TenantBy = by.Gateway.Listen, by.Gateway.Tenants, by.Gateway.TenantBy
	return &out
}
