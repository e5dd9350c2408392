package open

import (
	"testing"

	"github.com/furlhq/furl"
)

func TestOffersRecall(t *testing.T) {
	own := `{"name":"memory_get","description":"Get an original by its handle, such as furl:ID/12.0."}`
	for _, tt := range []struct {
		name string
		tool furl.Block
		want bool
	}{
		{"furl's MCP server", furl.Block{Kind: furl.KindOpaque, ID: "mcp__furl__memory_get", Text: own}, true},
		{"without the server's name", furl.Block{Kind: furl.KindOpaque, ID: "memory_get", Text: own}, true},
		{"only its search", furl.Block{Kind: furl.KindOpaque, ID: "mcp__furl__memory_search", Text: own}, false},
		{"a tool of somebody else", furl.Block{Kind: furl.KindOpaque, ID: "memory_get", Text: `{"name":"memory_get"}`}, false},
		{"instructions", furl.Block{ID: "memory_get", Text: own}, false},
	} {
		if got := offersRecall([]furl.Block{{Text: "You are an agent."}, tt.tool}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
