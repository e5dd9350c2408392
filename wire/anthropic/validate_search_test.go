package anthropic

import (
	"slices"
	"testing"

	"github.com/furlhq/furl"
)

// Requests with deferred tools, and the provider's texts for those that it refuses.
func TestValidateToolSearch(t *testing.T) {
	const (
		searching = `{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}`
		read      = `{"name":"read","input_schema":{"type":"object"}}`
		later     = `{"name":"weather","input_schema":{"type":"object"},"defer_loading":true}`
		both      = `{"name":"weather","input_schema":{"type":"object"},"defer_loading":true,"cache_control":{"type":"ephemeral"}}`
		looked    = `{"type":"server_tool_use","id":"s1","name":"tool_search_tool_regex","input":{"pattern":"weather"}}`
		seen      = `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"weather"}]}}`
		nothing   = `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[]}}`
		failed    = `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_result_error","error_code":"unavailable"}}`
		call      = `{"type":"tool_use","id":"a","name":"weather","input":{}}`
		own       = `{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"weather"}]}`
	)
	with := func(tools, messages string) string { return `{"tools":[` + tools + `],"messages":[` + messages + `]}` }
	one := u + "," + assistant(looked+","+seen+","+call) + "," + results("a")
	for _, test := range []struct{ name, body, want string }{
		{"a search and a deferred tool", with(searching+","+later, u), ""},
		{"a found tool is called", with(searching+","+read+","+later, one), ""},
		{"nothing found", with(searching+","+later, u+","+assistant(looked+","+nothing+","+word)+","+u), ""},
		{"a failed search", with(searching+","+later, u+","+assistant(looked+","+failed+","+word)+","+u), ""},
		{"the client's search", with(read+","+later, u+","+calls("a")+","+user(own)), ""},
		{"all are deferred", with(later, u), "At least one tool must have defer_loading=false. All tools cannot be deferred."},
		{"a breakpoint on a deferred tool", with(searching+","+both, u),
			"Tool 'weather' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching."},
		{"a reference to no tool", with(searching+","+read, one), "Tool reference 'weather' not found in available tools"},
		{"the client's reference to no tool", with(read+`,{"name":"x","input_schema":{},"defer_loading":true}`, u+","+calls("a")+","+user(own)),
			"Tool reference 'weather' not found in available tools"},
		{"a search without result", with(searching+","+later, u+","+assistant(looked+","+word)+","+a+","+u),
			"messages.1: `tool_search_tool_regex` tool use with id `s1` was found without a corresponding `tool_search_tool_result` block"},
		{"a result without search", with(searching+","+later, u+","+assistant(seen+","+word)+","+u),
			"messages.1.content.0: unexpected `tool_use_id` found in `tool_search_tool_result` blocks: s1. Each `tool_search_tool_result` block must have a corresponding `server_tool_use` block before it."},
		{"the client answers the search", with(searching+","+later, u+","+assistant(looked)+","+results("s1")),
			"messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: s1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."},
	} {
		got := ""
		if err := Codec.Validate(decode(t, test.body), furl.Model{ID: "m", ToolSearch: true}); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
	if got := References([]byte(seen)); !slices.Equal(got, []string{"weather"}) {
		t.Errorf("references %q", got)
	}
}
