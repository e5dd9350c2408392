package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// The report counts the tool definitions that were never called, and what deferring
// them would save.
func TestToolsNeverCalled(t *testing.T) {
	tool := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"input_schema":{"type":"object"}}`, name, strings.Repeat("It does things. ", 200))
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"tools":[` + tool("read") + "," + tool("draw") + "," + tool("fly") + `],"messages":[` +
		`{"role":"user","content":"go"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"text"}]},` +
		`{"role":"assistant","content":"Done."}]}`
	rec, err := transcript.Read("request.json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	cands, err := replay.Candidates(nil, "auto")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replay.Run(t.Context(), slices.Values([]*transcript.Recording{rec}), replay.Options{Candidates: cands})
	if err != nil {
		t.Fatal(err)
	}
	u := rep.Recordings[0].Tools
	if u == nil || u.Defined != 3 || u.NeverCalled != 2 || !u.Searchable || u.Saved == nil {
		t.Fatalf("tools: %+v", u)
	}
	if share := float64(u.NeverCalledTokens) / float64(u.Tokens); share < 0.6 || share > 0.7 {
		t.Errorf("%d of %d tokens were never called, want two thirds", u.NeverCalledTokens, u.Tokens)
	}
	if *u.Saved < 0.5 || *u.Saved > 0.7 { // nearly all of this prompt is tools
		t.Errorf("saved %.3f", *u.Saved)
	}
	if names := []string{u.Each[0].Name, u.Each[1].Name, u.Each[2].Name}; !slices.Equal(names, []string{"draw", "fly", "read"}) || u.Each[2].Calls != 1 || *u.Each[2].Cost <= 0 {
		t.Errorf("each: %+v", u.Each)
	}
	if said := rep.ToolDiet.String(); !strings.Contains(said, "2 of 3 tools with a definition were never called: their definitions cost $0.0") {
		t.Errorf("diet: %s", said)
	}
}
