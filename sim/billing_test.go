package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// Claude Code's first system block changes with each request, and Anthropic caches the
// prompt as if it were constant. Another block that changes breaks the cache.
func TestChangingBillingLine(t *testing.T) {
	reads := func(line string) (tokens int) {
		_, srv := serve(t, &sim.Options{})
		for i := range 3 {
			first := fmt.Sprintf(line, i)
			a := post(t, srv, "/v1/messages", `{"model":"claude-opus-4-6","max_tokens":100,"system":[{"type":"text","text":"`+first+`"},{"type":"text","text":"`+
				strings.Repeat("You are Claude Code. ", 2000)+`","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"hi"}]}`)
			var reply struct {
				Usage struct {
					Read int `json:"cache_read_input_tokens"`
				}
			}
			mustJSON(t, a.body, &reply)
			tokens += reply.Usage.Read
		}
		return tokens
	}
	const header = "x-anthropic-billing-header: cc_version=2.1.332.01c; cc_entrypoint=cli; cch=%05x;"
	fixed := reads(strings.Replace(header, "%05x", "%[1]T", 1))
	if got := reads(header); got != fixed || got == 0 {
		t.Errorf("%d tokens are read from the cache, and %d with a constant line", got, fixed)
	}
	if got := reads(header + "\\nUse style %[1]d."); got != 0 {
		t.Errorf("%d tokens are read although the instructions after the line change", got)
	}
}
