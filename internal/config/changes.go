package config

import (
	"reflect"
	"slices"
	"strings"
)

// atStart are the keys that a running gateway cannot change.
var atStart = []string{"store", "embeddings", "encryption", "summaries", "telemetry", "audit", "gateway.listen", "gateway.tls", "gateway.tenants", "gateway.tenant_by"}

// Changes lists the keys in which two configurations differ: those that a
// running gateway can change, and those that it reads when it starts.
func Changes(was, is *Config) (live, restart []string) {
	for _, key := range changes(reflect.ValueOf(*was), reflect.ValueOf(*is), "") {
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

// changes compares the keys of one group, and of the groups in the file as a
// whole. Options of a policy count as one.
func changes(was, is reflect.Value, prefix string) (keys []string) {
	for i := range was.NumField() {
		field := was.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		a, b := was.Field(i), is.Field(i)
		switch {
		case name == "" || name == "-":
		case prefix == "" && field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == was.Type().PkgPath():
			keys = append(keys, changes(a, b, name+".")...)
		case !reflect.DeepEqual(a.Interface(), b.Interface()):
			keys = append(keys, prefix+name)
		}
	}
	return keys
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
