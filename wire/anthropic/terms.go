package anthropic

import (
	"cmp"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// The words for usual terms: usage.speed, usage.service_tier, and usage.inference_geo, which is
// not_available for models before Claude Opus 4.6 (platform.claude.com/docs/en/api/messages).
const (
	standard     = "standard"
	global       = "global"
	notAvailable = "not_available"
)

// maxServerTools bounds the names in server_tool_use.
const maxServerTools = 50

// readTerm reads a field of a usage object that says under which terms the request was
// billed. It reports whether it is one. In a stream, later objects repeat the earlier ones'.
func readTerm(r *rawjson.Reader, key string, t *furl.Terms) bool {
	word := func(to *string) {
		s, ok := r.String()
		switch {
		case !ok || s == "":
		case s == standard || s == global || s == notAvailable:
			*to = ""
		default:
			*to = s
		}
	}
	switch key {
	case "speed":
		word(&t.Speed)
	case "inference_geo":
		word(&t.Geo)
	case "service_tier":
		word(&t.Tier)
	case "server_tool_use":
		if tools := readToolUses(r); tools != nil {
			t.Tools = tools
		}
	default:
		return false
	}
	return true
}

// readToolUses reads server_tool_use, such as {"web_search_requests": 2}.
func readToolUses(r *rawjson.Reader) (tools []furl.ToolUses) {
	if r.Kind() != '{' {
		r.Skip()
		return nil
	}
	for key := range r.Fields() {
		name := strings.TrimSuffix(string(key), "_requests")
		if n, ok := r.Int(); ok && n > 0 && len(tools) < maxServerTools {
			tools = append(tools, furl.ToolUses{Name: name, Uses: n})
		}
	}
	slices.SortFunc(tools, func(a, b furl.ToolUses) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}
