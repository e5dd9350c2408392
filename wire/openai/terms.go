package openai

import (
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// usualTiers are the service tiers of requests that are billed as usual. Groq calls its
// own on_demand. A response names the tier that served the request, never auto
// (developers.openai.com/api/docs/guides/flex-processing, priority-processing).
var usualTiers = []string{"", "default", "standard", "auto", "on_demand"}

// tierOf reads the service_tier of a response. Events repeat it: the last one counts.
func tierOf(reply *protocol.Reply, r *rawjson.Reader) {
	tier, ok := r.String()
	switch {
	case !ok:
	case slices.Contains(usualTiers, tier):
		reply.Terms.Tier = ""
	default:
		reply.Terms.Tier = tier
	}
}

// toolUses counts the calls of the provider's own tools in the output of a response.
func toolUses(items []*furl.Message) (tools []furl.ToolUses) {
	for _, m := range items {
		if name := BilledTool(m.Raw); name != "" {
			tools = AddUse(tools, name)
		}
	}
	return tools
}

// AddUse counts a use of a tool of the provider.
func AddUse(tools []furl.ToolUses, name string) []furl.ToolUses {
	i, ok := slices.BinarySearchFunc(tools, name, func(t furl.ToolUses, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		tools = slices.Insert(tools, i, furl.ToolUses{Name: name})
	}
	tools[i].Uses++
	return tools
}

// BilledTool returns the name of the tool of the provider that an output item is a billed
// call of, "" if it is none. Of the actions of a web search, only the search itself is.
func BilledTool(item []byte) string {
	switch rawjson.Unquote(rawjson.Field(item, "type")) {
	case "web_search_call":
		if action := rawjson.Field(item, "action"); len(action) > 0 && action[0] == '{' {
			if kind := rawjson.Unquote(rawjson.Field(action, "type")); kind != "" && kind != "search" {
				return ""
			}
		}
		return "web_search"
	case "file_search_call":
		return "file_search"
	case "code_interpreter_call":
		return "code_interpreter"
	}
	return ""
}
