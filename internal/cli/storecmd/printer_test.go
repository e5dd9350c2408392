package storecmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// Calls that furl answered itself are marked.
func TestShowMarksOwnCalls(t *testing.T) {
	for _, tt := range []struct {
		block furl.Block
		want  string
	}{
		{furl.Block{Kind: furl.KindCall, Name: "memory_search", Args: []byte(`{"query":"x"}`), Own: true}, "call memory_search, added by furl\n"},
		{furl.Block{Kind: furl.KindResult, Text: "nothing", Error: true, Own: true}, "result, failed, added by furl\n"},
		{furl.Block{Kind: furl.KindCall, Name: "memory_search", Args: []byte(`{}`)}, "call memory_search\n"},
	} {
		var out strings.Builder
		(&printer{w: &out}).block(&tt.block, tt.block.Text, "")
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("it is shown as %q, want %q", out.String(), tt.want)
		}
		if got := blockJSON(&tt.block).Own; got != tt.block.Own {
			t.Errorf("in JSON, own is %v, want %v", got, tt.block.Own)
		}
	}
}
