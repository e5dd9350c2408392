package replay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Definitions are read in the forms of each provider; deferred ones are not in the prompt.
func TestDefinitionsIn(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want []string
	}{
		{`[{"name":"Read","input_schema":{}},{"name":"mcp__a__b","defer_loading":true},{"type":"web_search_20250305","name":"web_search"}]`, []string{"Read", "web_search"}},
		{`[{"type":"function","function":{"name":"read"}},{"type":"custom","custom":{"name":"patch"}}]`, []string{"read", "patch"}},
		{`[{"type":"function","name":"read"},{"type":"namespace","name":"mcp__a","tools":[{"type":"function","name":"b"},{"type":"function","name":"c","defer_loading":true}]},{"type":"web_search"}]`, []string{"read", "mcp__a__b", "web_search"}},
		{`[{"functionDeclarations":[{"name":"read"},{"name":"mcp_a_b"}]},{"function_declarations":[{"name":"c"}]}]`, []string{"read", "mcp_a_b", "c"}},
		{`[{"toolSpec":{"name":"read"}}]`, []string{"read"}},
		{`[{}, 3, null, "x", {"name":7}, {"type":"namespace","name":"n","tools":[{"type":"namespace","name":"m","tools":[{"name":"deep"}]}]}]`, []string{"m"}},
		{`{`, nil},
	} {
		var got []string
		for _, d := range definitionsIn([]byte(c.raw), "", nil) {
			got = append(got, d.full())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.raw, got, c.want)
		}
	}
}

// diet replays recordings of OpenAI Responses; each is a list of tools and the names of calls.
func diet(t *testing.T, agent string, recordings ...[2]string) *Report {
	t.Helper()
	var list []*transcript.Recording
	for i, r := range recordings {
		var tools, input []string
		for name := range strings.FieldsSeq(r[0]) {
			tools = append(tools, fmt.Sprintf(`{"type":"function","name":%q,"description":%q,"parameters":{}}`, name, strings.Repeat("It does things. ", 100)))
		}
		for k, name := range strings.Fields(r[1]) {
			input = append(input, fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":%q,"arguments":"{}"},{"type":"function_call_output","call_id":"c%[1]d","output":"text"}`, k, name))
		}
		body := `{"model":"gpt-5","tools":[` + strings.Join(tools, ",") + `],"input":[{"type":"message","role":"user","content":"go"},` + strings.Join(append(input, `{"type":"message","role":"assistant","content":"Done."}`), ",") + `]}`
		rec, err := transcript.Read(fmt.Sprintf("%d.json", i), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		rec.Agent = agent
		list = append(list, rec)
	}
	cands, err := Candidates(nil, "none")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), slices.Values(list), Options{Candidates: cands})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// A tool that was called in one recording is none that was never called, also if that one has no
// definitions.
func TestToolDiet(t *testing.T) {
	d := diet(t, "Claude Code",
		[2]string{"Read mcp__notes__add mcp__notes__draw mcp__git__log mcp__git__push", "Read"},
		[2]string{"Read mcp__notes__add mcp__notes__draw", "mcp__notes__add"},
		[2]string{"", "mcp__notes__draw"},
	).ToolDiet
	if d.Recordings != 2 || d.Unrecorded != 1 || d.Tools != 5 || d.NeverCalled != 2 {
		t.Fatalf("%+v", d)
	}
	a := d.Agents[0]
	var got [][]string
	for _, s := range a.Servers {
		got = append(got, append([]string{s.Server}, s.NeverCalled...))
	}
	if want := [][]string{{""}, {"git", "mcp__git__log", "mcp__git__push"}, {"notes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("servers: %q, want %q", got, want)
	}
	if want := `{"permissions":{"deny":["mcp__git"]}}`; a.Setting != want || a.Where != "~/.claude/settings.json" {
		t.Errorf("setting: %s in %s, want %s", a.Setting, a.Where, want)
	}
	git, notes := a.Servers[1], a.Servers[2]
	if *git.Cost <= 0 || *git.NeverCalledCost != *git.Cost || *notes.NeverCalledCost != 0 || *notes.Cost <= *git.Cost {
		t.Errorf("costs: git %v of %v, notes %v of %v", *git.NeverCalledCost, *git.Cost, *notes.NeverCalledCost, *notes.Cost)
	}
	if sum := *a.Servers[0].Cost + *git.Cost + *notes.Cost; max(sum, *d.Cost)-min(sum, *d.Cost) > 1e-9 || *d.NeverCalledCost != *git.Cost {
		t.Errorf("the servers cost %v, the sum is %v", sum, *d.Cost)
	}
	if said := d.String(); !strings.Contains(said, "2 of 5 tools with a definition were never called") || !strings.Contains(said, "In 1 other recording, definitions are not recorded") {
		t.Error(said)
	}
}

// Calls inside a script are calls, and tools of a namespace are called by their own names.
func TestToolDietCalls(t *testing.T) {
	rec := &transcript.Session{Log: furl.NewLog()}
	rec.Preamble = []furl.Block{
		{Kind: furl.KindOpaque, Text: `{"type":"namespace","name":"mcp__notes","tools":[{"name":"add"},{"name":"draw"},{"name":"list"}]}`},
		{Kind: furl.KindOpaque, Text: `{"type":"custom","name":"exec"}`},
	}
	calls := []furl.Block{
		{Kind: furl.KindCall, ID: "1", Name: "add", Args: []byte(`{}`)},
		{Kind: furl.KindCall, ID: "2", Name: "exec", Text: `await tools.mcp__notes__list({})`, Args: []byte(`"await tools.mcp__notes__list({})"`)},
	}
	if _, err := rec.Log.Append(0, time.Time{}, furl.Import, &furl.Message{Role: furl.RoleAssistant, Blocks: calls}); err != nil {
		t.Fatal(err)
	}
	s := &session{counter: new(Options).counter(rec)}
	s.countTools(rec)
	var got []string
	for _, tool := range s.tools {
		got = append(got, fmt.Sprint(tool.Name, " ", tool.Calls))
	}
	if want := []string{"exec 1", "mcp__notes__add 1", "mcp__notes__draw 0", "mcp__notes__list 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without definitions the report says so, and guesses nothing.
func TestToolDietUnrecorded(t *testing.T) {
	rep := diet(t, "Codex", [2]string{"", "read"})
	if rep.Recordings[0].Tools != nil {
		t.Errorf("tools: %+v", rep.Recordings[0].Tools)
	}
	if d := rep.ToolDiet; d != nil {
		t.Errorf("diet: %+v", d)
	}
	share := 0.4
	d := &ToolDiet{Unrecorded: 1, FixedShare: &share}
	if said := d.String(); said != "Instructions and tools are 40% of the input cost as recorded. Tool definitions are not recorded, so what each tool costs is not known: furl run and furl serve record them." {
		t.Error(said)
	}
}
