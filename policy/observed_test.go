package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// observe adds a command in the assistant's text, and its output as words of the
// user.
func (s *session) observe(command, output string, failed bool) {
	s.say(furl.RoleAssistant, "I run it.\n```bash\n"+command+"\n```")
	s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: output, Observation: true, Error: failed}}})
}

func writtenSession(t *testing.T) *session {
	s := newSession(t)
	s.say(furl.RoleUser, "Fix the parser.")
	for i := range 14 {
		s.observe(fmt.Sprintf("cat part%d.go", i), fmt.Sprintf("package part%d ", i)+text(400), i == 3)
	}
	return s
}

// Every policy that hides results hides the output of commands in the
// assistant's text, and none of them hides the newest.
func TestObservationsAreResults(t *testing.T) {
	for _, name := range []string{"tool-age", "graduated", "rolling-mask-10", "rolling-mask-5", "clear-100k", "auto"} {
		t.Run(name, func(t *testing.T) {
			s := writtenSession(t)
			var with []any
			b := s.budget(10_000)
			switch name {
			case "graduated":
				with = append(with, Graduated{MaxInputChars: 20_000})
			case "clear-100k":
				b.Window, b.Size = 200_000, 150_000
			case "auto":
				b.Size = 9_900
			}
			plan := s.plan(must(t, name, with...), b)
			if len(plan.Reductions) == 0 {
				t.Fatalf("nothing was hidden: %+v", plan)
			}
			hidden := 0
			for i := range plan.View.Units {
				u := &plan.View.Units[i]
				for j := range u.Blocks {
					if sb := &u.Blocks[j]; sb.Block.Observation && sb.By != 0 {
						hidden++
						if u.Newest {
							t.Error("the newest output is hidden")
						}
					}
				}
			}
			if hidden == 0 {
				t.Errorf("no output is hidden in place, reductions %+v", plan.Reductions)
			}
		})
	}
}

// A6 and A5 hold for them too: failed output stays, and so does output with a
// name that newer commands use.
func TestObservationsStay(t *testing.T) {
	s := writtenSession(t)
	s.observe("grep -n w1 part2.go part2.go", "none", false)
	plan := s.plan(must(t, "tool-age"), s.budget(0))
	shown := make(map[string]bool)
	for i := range plan.View.Units {
		for _, sb := range plan.View.Units[i].Blocks {
			if sb.Block.Observation && sb.By == 0 {
				shown[strings.Fields(sb.Block.Text)[0]+" "+strings.Fields(sb.Block.Text + " -")[1]] = true
			}
		}
	}
	if !shown["package part3"] {
		t.Error("A6: the failed output was hidden")
	}
	if shown["package part1"] || shown["package part4"] {
		t.Errorf("old output stays: %v", shown)
	}
}

// An extract has the commands, and no output as words of the user.
func TestExtractOfObservations(t *testing.T) {
	s := writtenSession(t)
	v := s.view()
	e := Extract{MaxTokens: 200}
	got := e.Text(v, v.Units[:len(v.Units)-1], words{})
	for _, want := range []string{"User: Fix the parser.", "cat part7.go", "cat part3.go" + failedQuote} {
		if !strings.Contains(got, want) {
			t.Errorf("the extract lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "User: package") {
		t.Errorf("the extract has output as words of the user:\n%s", got)
	}
}

func TestCommandIn(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"I look.\n```\nls -la\n```", "ls -la"},
		{"First ```go\nx\n``` then\n```bash\n\n  make test \n```\n", "make test"},
		{"Look:\n<execute_bash>\ngit status\n</execute_bash>", "git status"},
		{"Thought:\nI look.\nAction:\n{\"name\": \"find\"}", `{"name": "find"}`},
		{"no command", ""},
		{"``` open", ""},
		{"``````", ""},
		{"", ""},
	} {
		if got := commandIn([]string{tt.text}); got != tt.want {
			t.Errorf("commandIn(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
