package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire"
)

// The billing line is found where Claude Code has it, and only the line is replaced.
func TestBillingLine(t *testing.T) {
	const other = `x-anthropic-billing-header: cch="é\";`
	tests := []struct{ name, body, line, want string }{
		{"Claude Code's first block", `{"model":"m","system":[ {"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.332.01c; cch=00001;"},{"type":"text","text":"You are","cache_control":{"type":"ephemeral"} }],"messages":[]}`,
			"x-anthropic-billing-header: cc_version=2.1.332.01c; cch=00001;",
			`{"model":"m","system":[ {"type":"text","text":"x-anthropic-billing-header: cch=\"é\\\";"},{"type":"text","text":"You are","cache_control":{"type":"ephemeral"} }],"messages":[]}`},
		{"before other text", `{"system":[{"type":"text","text":"x-anthropic-billing-header: \u00e9\\n;\nRules \u00e9"}]}`, "x-anthropic-billing-header: é\\n;",
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=\"é\\\";\nRules \u00e9"}]}`},
		{"before an escaped line feed", `{"system":[{"type":"text","text":"x-anthropic-billing-header: a\u000Ab"}]}`, "x-anthropic-billing-header: a",
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=\"é\\\";\u000Ab"}]}`},
		{"instructions as a text", `{"system":"x-anthropic-billing-header:","messages":[]}`, "x-anthropic-billing-header:", `{"system":"x-anthropic-billing-header: cch=\"é\\\";","messages":[]}`},
		{"after another block", `{"system":[1,[{}],{"type":"text","text":"a"},{"type":"text","text":"x-anthropic-billing-header: a"},{"type":"text","text":"x-anthropic-billing-header: b"}]}`, "x-anthropic-billing-header: a",
			`{"system":[1,[{}],{"type":"text","text":"a"},{"type":"text","text":"x-anthropic-billing-header: cch=\"é\\\";"},{"type":"text","text":"x-anthropic-billing-header: b"}]}`},
		{"the same line", `{"system":"x-anthropic-billing-header: cch=\"\u00e9\\\";"}`, other, ""},
		{"none", `{"system":[{"type":"text","text":"You are"}]}`, "", ""},
		{"not a text", `{"system":[{"type":"image","text":"x-anthropic-billing-header: a"},{"text":"x-anthropic-billing-header: a"},{"type":"text","text":["x-anthropic-billing-header: a"]}]}`, "", ""},
		{"within a text", `{"system":" x-anthropic-billing-header: a"}`, "", ""},
		{"in a message", `{"messages":[{"role":"user","content":"x-anthropic-billing-header: a"}],"metadata":{"system":"x-anthropic-billing-header: a"}}`, "", ""},
		{"cut off", `{"system":"x-anthropic-billing-header: a"`, "", ""},
		{"not an object", `["x-anthropic-billing-header: a"]`, "", ""},
	}
	api := wire.For(furl.FormatAnthropic)
	for _, tt := range tests {
		if got := api.BillingLine([]byte(tt.body)); got != tt.line {
			t.Errorf("%s: line %q, want %q", tt.name, got, tt.line)
		}
		got, ok := api.WithBillingLine([]byte(tt.body), other)
		if string(got) != tt.want || ok != (tt.want != "") || ok && !json.Valid(got) {
			t.Errorf("%s: %s, %t, want %s", tt.name, got, ok, tt.want)
		}
		for _, bad := range []string{"", "You are", "x-anthropic-billing-header: a\nObey."} {
			if got, ok := api.WithBillingLine([]byte(tt.body), bad); ok {
				t.Errorf("%s: %q was put in place of the line: %s", tt.name, bad, got)
			}
		}
	}
	for _, format := range []furl.Format{furl.FormatChat, furl.FormatResponses} {
		api := wire.For(format)
		body := []byte(tests[0].body)
		if _, ok := api.WithBillingLine(body, other); ok || api.BillingLine(body) != "" {
			t.Errorf("%s has a billing line", format)
		}
	}
}
