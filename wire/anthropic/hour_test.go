package anthropic_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire"
)

// The breakpoints of tools and instructions get a lifetime of one hour, and nothing else
// of the request changes.
func TestHourPreamble(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"instructions", `{"model":"m", "system":[ {"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"} }],"messages":[{"role":"user","content":[{"type":"text","text":"c","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"model":"m", "system":[ {"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"1h"} }],"messages":[{"role":"user","content":[{"type":"text","text":"c","cache_control":{"type":"ephemeral"}}]}]}`},
		{"all breakpoints", `{"tools":[{"cache_control":{"type":"ephemeral"},"name":"a"},{"name":"b","cache_control":{"ttl":"5m","type":"ephemeral"}}],"system":[{"text":"é","cache_control":{"type":"ephemeral","scope":"global"}}]}`,
			`{"tools":[{"cache_control":{"type":"ephemeral","ttl":"1h"},"name":"a"},{"name":"b","cache_control":{"ttl":"1h","type":"ephemeral"}}],"system":[{"text":"é","cache_control":{"type":"ephemeral","scope":"global","ttl":"1h"}}]}`},
		{"some have an hour", `{"tools":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}],"system":[{"cache_control":{"type":"ephemeral"}}]}`,
			`{"tools":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}],"system":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`},
		{"all have an hour", `{"system":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`, ""},
		{"no breakpoint", `{"tools":[{"name":"a"}],"system":[{"text":"a","cache_control":null}],"cache_control":{"type":"ephemeral"}}`, ""},
		{"instructions as a text", `{"system":"a"}`, ""},
		{"a breakpoint inside a tool's schema", `{"tools":[{"input_schema":{"cache_control":{"type":"ephemeral"}}}]}`, ""},
		{"not an object", `[]`, ""},
		{"cut off", `{"system":[{"cache_control":{"type":"ephemeral"}}]`, ""},
		{"not a list of objects", `{"system":[1,"a",[{}]],"tools":[null]}`, ""},
	}
	for _, tt := range tests {
		got, ok := wire.For(furl.FormatAnthropic).HourPreamble([]byte(tt.body))
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %s, %t, want %s", tt.name, got, ok, tt.want)
		}
	}
	for _, format := range []furl.Format{furl.FormatChat, furl.FormatResponses} {
		if _, ok := wire.For(format).HourPreamble([]byte(`{"system":[{"cache_control":{"type":"ephemeral"}}]}`)); ok {
			t.Errorf("%s has lifetimes of parts of a prompt", format)
		}
	}
}
