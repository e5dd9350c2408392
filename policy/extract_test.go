package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// whole is the extract of everything a session shows.
func (s *session) whole(e Extract) string { return e.Text(s.view(), s.view().Units, words{}) }

func TestExtractLimits(t *testing.T) {
	t.Run("M9 never longer than it may be", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := anySession(rt, t)
			chars := rapid.IntRange(150, 2000).Draw(rt, "chars")
			tokens := rapid.IntRange(40, 400).Draw(rt, "tokens")
			for _, e := range []Extract{{MaxChars: chars}, {MaxTokens: tokens}, {MaxChars: chars, MaxTokens: tokens}} {
				text := s.whole(e)
				if n := utf8.RuneCountInString(text); e.MaxChars > 0 && n > chars {
					rt.Fatalf("%d characters, %d allowed:\n%s", n, chars, text)
				}
				if n := (words{}).Count(text); e.MaxTokens > 0 && n > tokens {
					rt.Fatalf("%d tokens, %d allowed:\n%s", n, tokens, text)
				}
				if again := s.whole(e); again != text {
					rt.Fatalf("the same extract twice:\n%s\n%s", text, again)
				}
			}
		})
	})
	t.Run("M9 the newest first", func(t *testing.T) {
		s := newSession(t)
		for i := range 300 {
			s.say(furl.RoleUser, fmt.Sprintf("Request number %d. Please.", i))
			s.step("read", "x")
			s.say(furl.RoleAssistant, fmt.Sprintf("Answer %d.", i))
		}
		text := s.whole(Extract{})
		for _, want := range []string{"User: Request number 299.", "Last conclusion: Answer 299."} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if strings.Contains(text, "number 0.") {
			t.Errorf("the oldest found room in\n%s", text)
		}
		if at := strings.Index(text, "number 299"); at < strings.Index(text, "number 298") {
			t.Errorf("not in the order of the conversation:\n%s", text)
		}
	})
	t.Run("M9 half the context at most on a long conversation", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, text(30))
		for range 12 {
			s.step("read", text(200))
		}
		plan := s.plan(must(t, "compaction"), s.budget(1500))
		if plan.After > plan.Before/2 {
			t.Errorf("%d of %d tokens are left", plan.After, plan.Before)
		}
	})
}

func TestExtractLeavesModelSummaries(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(30))
	for range 6 {
		s.step("read", text(100))
	}
	v := s.view()
	s.add(&furl.Reduction{
		Stage:   "compact",
		Items:   []furl.Item{Marker(v, s.budget(0), v.Units[:3], "what a model wrote")},
		Summary: &furl.Summary{Number: 4, Text: "what a model wrote", Model: "m"},
	})
	plan := s.plan(must(t, "compaction"), s.budget(500))
	if len(plan.Reductions) != 1 || plan.Reductions[0].Stage != "extract" {
		t.Fatalf("plan %+v", plan.Steps)
	}
	if got := plan.Reductions[0].Summary.Number; got != 5 {
		t.Errorf("the summary after number 4 has number %d", got)
	}
	if first := s.view().Units[0]; first.Kind != furl.UnitMark || first.Blocks[0].Words() != "what a model wrote" {
		t.Errorf("the model's summary is gone: %q", first.Blocks[0].Words())
	}
}

func TestSentence(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"Fix it. Then test.", "Fix it."},
		{"Fix a.go now", "Fix a.go now"},
		{"  Really?\nYes.", "Really?"},
		{"version 1.2 is out! Hurray", "version 1.2 is out!"},
		{"直してください。次に", "直してください。"},
		{"end.", "end."},
		{strings.Repeat("é", 300), strings.Repeat("é", maxSentence-1) + "…"},
	} {
		if got := sentence(tt.text); got != tt.want {
			t.Errorf("sentence(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestUserWords(t *testing.T) {
	blocks := func(texts ...string) (b []furl.Block) {
		for _, text := range texts {
			b = append(b, furl.Block{Kind: furl.KindText, Text: text})
		}
		return append(b, furl.Block{Kind: furl.KindResult, Text: "a result"})
	}
	for _, tt := range []struct {
		blocks []furl.Block
		want   string
	}{
		{blocks("<system-reminder>be good</system-reminder>", " ", "Do it. Now."), "Do it."},
		{blocks("<task>\n<id>7</id> Only this.</task>"), "7 Only this."},
		{blocks("a < b"), "a < b"},
		{blocks("<never closed"), "<never closed"},
		{blocks(), ""},
	} {
		if got := userWords(tt.blocks); got != tt.want {
			t.Errorf("userWords(%v) = %q, want %q", tt.blocks, got, tt.want)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"\n  first \n second", "first"},
		{"ok\n\tpanic: boom\nError: later", "panic: boom"},
		{"cat: x: No such file or directory", "cat: x: No such file or directory"},
	} {
		if got := failure(tt.text); got != tt.want {
			t.Errorf("failure(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		tool, args, target string
		written            []string
	}{
		{"read", `{"limit":3,"path":"a.go"}`, "a.go", nil},
		{"Grep", `{"path":"cmd","pattern":"x.*y"}`, "x.*y in cmd", nil},
		{"Grep", `{"pattern":"x.*y"}`, "x.*y", nil},
		{"Write", `{"content":"x","file_path":"a.go"}`, "a.go", []string{"a.go"}},
		{"bash", `{"command":"go test ./...\nls"}`, "go test ./...", nil},
		{"shell", `{"command":["bash","-lc","ls"]}`, "bash -lc ls", nil},
		{"str_replace_editor", `{"command":"view","path":"a.go"}`, "a.go", nil},
		{"str_replace_editor", `{"command":"create","path":"a.go"}`, "a.go", []string{"a.go"}},
		{"odd", `{"n":1,"list":["inner"],"o":{"p":"q"},"what":"this"}`, "this", nil},
		{"none", `{}`, "", nil},
		{"apply_patch", `"*** Begin Patch\n*** Update File: a.go\n@@\n*** Add File: b.go\n*** End Patch"`, "a.go, b.go", []string{"a.go", "b.go"}},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Delete File: c.go\n"}`, "*** Begin Patch", []string{"c.go"}},
		{"exec", `"print(1)"`, "print(1)", nil},
		{"exec", `"const p = \"*** Begin Patch\\n*** Update File: a.go\\n*** Add File: b.go\"; await tools.apply_patch(p); text(await tools.exec_command({cmd:'ls'}))"`,
			"apply_patch a.go, b.go, exec_command ls", []string{"a.go", "b.go"}},
		{"exec", "\"await tools.apply_patch(`*** Begin Patch\\n*** Update File: ${f()}\\n*** Update File: a.go\\n`)\"", "apply_patch a.go", []string{"a.go"}},
		{"exec", `"await tools.write_stdin({session_id: r.id, chars: ''})"`, "write_stdin", nil},
		{"broken", `{"path":`, "", nil},
		{"null", `null`, "", nil},
	} {
		b := &furl.Block{Kind: furl.KindCall, Name: tt.tool, Args: json.RawMessage(tt.args)}
		if got := target(b); got != tt.target {
			t.Errorf("target of %s %s = %q, want %q", tt.tool, tt.args, got, tt.target)
		}
		if got := Written(b); !slices.Equal(got, tt.written) {
			t.Errorf("%s %s writes %q, want %q", tt.tool, tt.args, got, tt.written)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"éééé", 4, "éééé"}, {"ééééé", 4, "ééé…"},
	} {
		if got := cut(tt.text, tt.n); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{`{"path":"a"}`, `["a"]`, `"x"`, `{`, `{"a":{"b":["c"]}}`, `{"command":["a",1]}`, "*** Add File: a"} {
		f.Add("write", seed)
	}
	f.Fuzz(func(t *testing.T, tool, args string) {
		b := &furl.Block{Kind: furl.KindCall, Name: tool, Args: json.RawMessage(args)}
		if s := target(b); utf8.RuneCountInString(s) > maxTarget || strings.Contains(s, "\n") {
			t.Errorf("target %q", s)
		}
		for _, s := range Written(b) {
			if utf8.RuneCountInString(s) > maxTarget || strings.Contains(s, "\n") {
				t.Errorf("written %q", s)
			}
		}
	})
}

func TestTemplate(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	s.step("read", text(20))
	s.step("read", text(20))
	v := s.view()
	r := &Result{View: v, Unit: &v.Units[1], Block: &v.Units[1].Blocks[1], Age: 1, Recall: true}
	for _, tt := range []struct{ text, want string }{
		{"plain", "plain"},
		{"{tool} {args}", `read {"n":1}`},
		{"{chars} {tokens} {age} {handle}", "69 24 1 furl:3.0"},
		{"{unknown} {tool", "{unknown} {tool"},
		{"}{age}{", "}1{"},
		{"{{age}}", "{1}"},
	} {
		if got := Template(tt.text)(r); got != tt.want {
			t.Errorf("Template(%q) writes %q, want %q", tt.text, got, tt.want)
		}
	}
	r.Recall = false
	if got, want := Template("{tool}{handle}")(r), "read"; got != want {
		t.Errorf("without recall: %q, want %q", got, want)
	}
}
