package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/sim"
)

// The model sees a deferred tool only after a search has found it, and the definition
// is billed from then on.
func TestToolSearch(t *testing.T) {
	script, err := sim.ParseScript("script", []byte("-- 1 --\ncall: weather {\"city\":\"Oslo\"}\n-- 2 --\ncall: weather {\"city\":\"Rome\"}\n-- 3 --\ntext: Done.\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, srv := serve(t, &sim.Options{Player: script})
	const search = `{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`
	weather := fmt.Sprintf(`{"name":"weather","description":%q,"input_schema":{"type":"object"},"defer_loading":true}`, strings.Repeat("Tells the weather. ", 200))
	list := []string{`{"role":"user","content":"Is it warm?"}`}
	ask := func(model, tools string) answered {
		return post(t, srv, "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":500,"tools":[%s],"messages":[%s]}`, model, tools, strings.Join(list, ",")))
	}
	for i := range 2 {
		r := ask("claude-sonnet-4-5", search+","+readTool+","+weather)
		if r.status != 200 {
			t.Fatalf("%s", r.body)
		}
		content := string(rawjson.Field(r.body, "content"))
		if got, want := strings.Count(content, `"tool_search_tool_result"`), 1-i; got != want {
			t.Errorf("answer %d has %d searches, want %d: %s", i, got, want, content)
		}
		id := string(rawjson.Field([]byte(content[strings.Index(content, `{"type":"tool_use"`):len(content)-1]), "id"))
		list = append(list, `{"role":"assistant","content":`+content+`}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":`+id+`,"content":"20 degrees"}]}`)
	}
	ask("claude-sonnet-4-5", search+","+readTool+","+weather)
	prompt := func(u sim.Usage) int { return u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h }
	sizes := s.Requests()
	if first, second := prompt(sizes[0].Usage), prompt(sizes[1].Usage); second-first < 600 {
		t.Errorf("prompts of %d and %d tokens: the found definition has 600 and more", first, second)
	}
	if second, third := prompt(sizes[1].Usage), prompt(sizes[2].Usage); third-second > 200 {
		t.Errorf("prompts of %d and %d tokens: the definition counts once", second, third)
	}
	for _, refused := range []struct{ model, tools, want string }{
		{"claude-sonnet-4-5", weather, "At least one tool must have defer_loading=false. All tools cannot be deferred."},
		{"claude-opus-4-1", search + "," + weather, "does not support tool types: tool_search_tool_bm25_20251119."},
	} {
		list = list[:1]
		if r := ask(refused.model, refused.tools); r.status != 400 || !strings.Contains(string(r.body), refused.want) {
			t.Errorf("%s: %d %s; want %s", refused.model, r.status, r.body, refused.want)
		}
	}
}
