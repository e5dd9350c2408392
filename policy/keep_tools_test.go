package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// decisions starts a session with what a user decided, three lists of tasks and two reads of
// instructions, and continues it until policies have hidden old results.
func decisions(t *testing.T) *session {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	s.call("Skill", `{"skill":"release"}`, "SKILL "+text(300), false)
	s.call("AskUserQuestion", `{"question":"Which API?"}`, "ANSWER "+text(300), false)
	s.call("ExitPlanMode", `{"plan":"1. write it"}`, "PLAN "+text(300), false)
	s.call("mcp__jira__get_issue", `{"id":"F-1"}`, "JIRA "+text(300), false)
	for i := range 3 {
		s.call("TodoWrite", fmt.Sprintf(`{"todos":["TASKS%d %s"]}`, i, text(300)), fmt.Sprintf("LIST%d %s", i, text(300)), false)
		s.call("Read", `{"file_path":"/src/AGENTS.md"}`, fmt.Sprintf("RULES%d %s", i, text(300)), false)
	}
	return s
}

// shownOf lists the words in capitals that are visible.
func (s *session) shownOf(words ...string) string {
	v := s.view()
	var shown []string
	for _, w := range words {
		for i := range v.Messages {
			if slices.ContainsFunc(v.Messages[i].Blocks, func(b furl.ShownBlock) bool {
				return strings.HasPrefix(b.Block.Text, w+" ") || b.Block.Kind == furl.KindCall && strings.Contains(string(b.Block.Args), w+" ")
			}) {
				shown = append(shown, w)
				break
			}
		}
	}
	return strings.Join(shown, " ")
}

// A script is a call of each tool that it calls.
func TestDecisionsInScriptsStay(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	s.call("exec", `"const r = await tools.request_user_input({questions: [{question: 'Which API?'}]}); text(r)"`, "ANSWER "+text(300), false)
	for i := range 3 {
		s.call("exec", `"text((await tools.exec_command({cmd: 'ls'})).output)"`, text(900), false)
		s.call("exec", fmt.Sprintf(`"await tools.update_plan({plan: [{step: 'TASKS%d %s'}]}); text((await tools.exec_command({cmd: 'ls'})).output)"`, i, text(300)), fmt.Sprintf("LIST%d %s", i, text(300)), false)
	}
	p := must(t, "auto", Auto{})
	for i := range 100 {
		s.call("exec", fmt.Sprintf(`"text((await tools.exec_command({cmd: 'list %d'})).output)"`, i), text(400), false)
		s.plan(p, s.paid())
	}
	if got, want := s.shownOf("ANSWER", "LIST0", "LIST1", "LIST2"), "ANSWER LIST2"; got != want {
		t.Errorf("visible: %s, want: %s", got, want)
	}
}

func TestDecisionsStay(t *testing.T) {
	words := []string{"SKILL", "ANSWER", "PLAN", "JIRA", "TASKS0", "LIST0", "TASKS2", "LIST2", "RULES0", "RULES2"}
	// RULES2 is a newest read without an edit since: auto would keep it for longer anyway.
	for _, tt := range []struct {
		name, policy string
		settings     Settings
		want         string
	}{
		{"auto", "auto", Settings{}, "SKILL ANSWER PLAN TASKS2 LIST2 RULES2"},
		{"frugal", "auto:frugal", Settings{}, "SKILL ANSWER PLAN TASKS2 LIST2 RULES2"},
		{"one more tool", "auto", Settings{ToolOptions: ToolOptions{KeepTools: []string{"mcp__jira__*"}}}, "SKILL ANSWER PLAN JIRA TASKS2 LIST2 RULES2"},
		{"a list of one's own", "auto", Settings{ToolOptions: ToolOptions{ExcludeTools: []string{"skill"}}}, "SKILL RULES2"},
		{"none", "auto", Settings{ToolOptions: ToolOptions{ExcludeTools: []string{}}}, "RULES2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := decisions(t)
			p, err := NewSet().Policy(tt.policy, tt.settings)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(400), false)
				s.plan(p, s.paid())
			}
			if got := s.shownOf(words...); got != tt.want {
				t.Errorf("visible: %s\nwant:    %s", got, tt.want)
			}
		})
	}
}

// TestDecisionsYield: a tenth of the window is for what the user decided, the newest first, and
// a window that demands more gets it.
func TestDecisionsYield(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	for i := range 40 {
		s.call("AskUserQuestion", fmt.Sprintf(`{"q":%d}`, i), fmt.Sprintf("ANSWER%d %s", i, text(200)), false)
	}
	for i := range 100 {
		s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(400), false)
	}
	plan := s.plan(must(t, "sliding-window"), s.budget(20_000))
	if plan.View.Tokens > 20_000 {
		t.Errorf("the view has %d tokens", plan.View.Tokens)
	}
	if got := s.shownOf("ANSWER0", "ANSWER25", "ANSWER35", "ANSWER39"); got != "ANSWER35 ANSWER39" {
		t.Errorf("visible: %q", got)
	}
}

func TestToolOptionsAreChecked(t *testing.T) {
	set := NewSet()
	if err := set.Configure("auto", []byte(`{"keep_tools": ["mcp__[*"]}`)); err == nil || !strings.Contains(err.Error(), `invalid keep_tools "mcp__[*"`) {
		t.Errorf("a broken pattern: %v", err)
	}
	if err := set.Configure("auto", []byte(`{"keep_tools": ["a"], "exclude_tools": []}`)); err != nil {
		t.Fatal(err)
	}
	other := set.Clone()
	if err := other.Configure("auto", []byte(`{"keep_tools": ["b", "c"]}`)); err != nil {
		t.Fatal(err)
	}
	p, err := set.Policy("auto", Settings{ToolOptions: ToolOptions{KeepTools: []string{"d"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o := p.(*Pipeline).ToolOptions; !slices.Equal(o.KeepTools, []string{"a", "d"}) || o.ExcludeTools == nil || len(o.ExcludeTools) != 0 {
		t.Errorf("the options are %+v", o)
	}
}
