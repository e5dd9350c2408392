package openai

import (
	"testing"

	"github.com/furlhq/furl"
)

// A deferred tool needs the provider's search for tools.
func TestResponsesValidateToolSearch(t *testing.T) {
	const (
		later = `{"type":"function","name":"weather","parameters":{},"defer_loading":true}`
		space = `{"type":"namespace","name":"crm","description":"d","tools":[` + later + `]}`
	)
	for tools, want := range map[string]string{
		later + `,{"type":"tool_search"}`:                      "",
		space + `,{"type":"tool_search"}`:                      "",
		`{"type":"function","name":"weather","parameters":{}}`: "",
		later: "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
		space: "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
	} {
		req, err := Responses.DecodeRequest([]byte(`{"model":"m","input":"go","tools":[` + tools + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := Responses.Validate(req, furl.Model{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", tools, got, want)
		}
	}
}
