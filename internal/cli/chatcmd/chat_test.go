package chatcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/conversation"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// newConversation returns a conversation in an empty folder, with a simulated model that
// replies from a script.
func newConversation(t *testing.T, script string) *chatRun {
	t.Helper()
	store := inmem.New()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewConversationIn(t, script, store)
}

// NewConversationIn is newConversation with a store, which stays open.
func NewConversationIn(t *testing.T, script string, store storage.Store) *chatRun {
	t.Helper()
	home := t.TempDir()
	t.Setenv("FURL_DATA", home)
	t.Setenv("FURL_CONFIG", filepath.Join(home, "none.yaml"))
	t.Setenv("FURL_STORE", "")
	write := func(name, text string) string {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("none.yaml", "")
	write("work/main.go", "package main\n")
	f := &chatFlags{Options: conversation.Options{Folder: filepath.Join(home, "work"), Script: write("script.txtar", script)}}
	c, err := f.open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Asked answers questions in order, and records them.
type Asked struct {
	Answers   []chat.Answer
	questions []chat.Question
}

func (a *Asked) Ask(_ context.Context, q chat.Question) (chat.Answer, error) {
	a.questions = append(a.questions, q)
	if len(a.Answers) == 0 {
		return chat.Answer{}, errors.New("canceled")
	}
	next := a.Answers[0]
	a.Answers = a.Answers[1:]
	return next, nil
}

func (c *chatRun) say(t *testing.T, ask chat.Asker, text string) (events []agent.Event) {
	t.Helper()
	for e, err := range c.Run(t.Context(), ask, agent.Text(text)) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func (c *chatRun) slash(t *testing.T, ask chat.Asker, line string) chat.Reply {
	t.Helper()
	r := c.Command(t.Context(), ask, line, 80)
	if r.Err != nil {
		t.Fatalf("%s: %v", line, r.Err)
	}
	return r
}

// A summary that waits is shown to the user, who edits and approves it (C10).
func TestC10ChatAsksAboutSummary(t *testing.T) {
	long := strings.Repeat("A line about the planner and its cache.\n", 400)
	script := "-- summary --\nwhen: (?i)summar\ntext: <summary>They talk about the planner.</summary>\n" +
		"-- reply --\nrepeat: 30\ntext: " + long
	c := newConversation(t, script)
	c.slash(t, nil, "/settings policy=compaction context_limit=32000 ask_first=on")
	a := &Asked{Answers: []chat.Answer{{Option: 1}, {Text: "Edited by the user."}}}
	for i := 0; len(a.questions) < 2 && i < 20; i++ {
		c.say(t, a.Ask, "Tell me about the planner.")
	}
	if len(a.questions) != 2 || !strings.Contains(a.questions[0].Body, "talk about the planner") || !a.questions[1].Edit {
		t.Fatalf("got questions %+v", a.questions)
	}
	list, _, err := c.Entries(100)
	if err != nil {
		t.Fatal(err)
	}
	marker := ""
	for _, e := range list {
		if e.Kind == chat.Marker {
			marker = e.Text
		}
	}
	if !strings.HasPrefix(marker, "Context Compacted #1 — ") {
		t.Errorf("got marker %q", marker)
	}
	if out := c.slash(t, nil, "/summary").Text; !strings.Contains(out, "Edited by the user.") {
		t.Errorf("got summaries %q", out)
	}
	if m, err := c.Meter(); err != nil || m.Hidden == 0 || m.Window != 32000 || m.Size == 0 {
		t.Errorf("got meter %+v, error %v", m, err)
	}
}

// A rewind goes back to before a message and returns its text; what was hidden after it
// is shown again.
func TestChatRewind(t *testing.T) {
	c := newConversation(t, "-- reply --\nrepeat: 9\ntext: Yes.\n")
	c.say(t, nil, "first")
	c.say(t, nil, "second")
	c.say(t, nil, "third")
	a := &Asked{Answers: []chat.Answer{{Option: 1}}}
	r := c.slash(t, a.Ask, "/rewind")
	if r.Input != "second" || !r.Reload || len(a.questions) != 1 || len(a.questions[0].Options) != 3 || a.questions[0].Options[0].Label != "third" {
		t.Fatalf("got %+v, questions %+v", r, a.questions)
	}
	list, before, err := c.Entries(10)
	if err != nil || before != 0 || len(list) != 2 || list[0].Text != "first" || list[1].Text != "Yes." {
		t.Fatalf("got entries %+v, %d before, error %v", list, before, err)
	}
	back := r.Text[strings.Index(r.Text, "/rewind"):]
	c.slash(t, nil, back)
	if list, _, _ := c.Entries(10); len(list) != 6 {
		t.Errorf("after %s: got %d entries", back, len(list))
	}
	if list, before, _ := c.Entries(2); len(list) != 2 || before != 4 || list[1].Text != "Yes." {
		t.Errorf("the last two: got %+v, %d before", list, before)
	}
}

// A fork continues in the copy, and the original stays as it was.
func TestChatFork(t *testing.T) {
	c := newConversation(t, "-- reply --\nrepeat: 9\ntext: Yes.\n")
	c.say(t, nil, "first")
	was := c.Session()
	c.slash(t, nil, "/fork")
	c.say(t, nil, "second")
	if c.Session().ID() == was.ID() || was.Head() >= c.Session().Head() {
		t.Errorf("the original has %d records, the copy %d", was.Head(), c.Session().Head())
	}
	c.slash(t, nil, "/resume "+string(was.ID()))
	if c.Session().ID() != was.ID() {
		t.Errorf("got session %s", c.Session().ID())
	}
	c.slash(t, nil, "/new")
	if list, _, _ := c.Entries(10); len(list) != 0 {
		t.Errorf("a new session has %+v", list)
	}
}

// Every slash command has a description, and none that changes nothing fails in an empty
// session for another reason than a missing argument.
func TestChatCommandsInEmptySession(t *testing.T) {
	c := newConversation(t, "-- reply --\ntext: Yes.\n")
	for _, s := range c.Commands() {
		if s.Short == "" || len(s.Short) > 60 {
			t.Errorf("/%s: description %q", s.Name, s.Short)
		}
		if s.Name == "compact" || s.Name == "quit" {
			continue
		}
		r := c.Command(t.Context(), nil, "/"+s.Name, 80)
		if r.Err != nil && !strings.Contains(r.Err.Error(), "missing argument") && !strings.Contains(r.Err.Error(), "missing handles") && !strings.Contains(r.Err.Error(), "empty search") &&
			!strings.Contains(r.Err.Error(), "no summary in use") && !strings.Contains(r.Err.Error(), "no other session") {
			t.Errorf("/%s: %v", s.Name, r.Err)
		}
		if strings.Contains(r.Text, "furl "+s.Name) {
			t.Errorf("/%s names a command of furl: %q", s.Name, r.Text)
		}
	}
}

// A long run with ask_first hides nothing before the user has approved. The question has
// the figures of what is recorded then, and a refused or postponed summary is not asked
// about with each request (C10).
func TestC10ChatAsksInTheRun(t *testing.T) {
	script := "-- summary --\nwhen: (?i)summar\ntext: <summary>They read the file.</summary>\n" +
		"-- read --\nrepeat: 24\ncall: read_file {\"path\":\"big.txt\"}\n-- end --\ntext: I have read it.\n"
	for name, answer := range map[string]int{"use it": 0, "decide later": 2, "discard it": 3} {
		t.Run(name, func(t *testing.T) {
			c := newConversation(t, script)
			if err := os.WriteFile(filepath.Join(c.Dir, "big.txt"), []byte(strings.Repeat("A line about the planner.\n", 300)), 0o600); err != nil {
				t.Fatal(err)
			}
			c.slash(t, nil, "/settings policy=compaction context_limit=32000 ask_first=on")
			type asking struct {
				title  string
				size   int
				hidden int // reductions before the question, apart from those that the window required
			}
			var list []asking
			ask := func(_ context.Context, q chat.Question) (chat.Answer, error) {
				a := asking{title: q.Title, size: c.Session().Context("").Size}
				for _, r := range c.Session().Reductions() {
					if r.Stage != "backstop" && r.Stage != "compact" {
						a.hidden++
					}
				}
				list = append(list, a)
				return chat.Answer{Option: answer}, nil
			}
			c.say(t, ask, "Read the file often.")
			if len(list) == 0 || len(list) > 6 {
				t.Fatalf("asked %d times: %+v", len(list), list)
			}
			for _, a := range list {
				var n, before, after int
				if _, err := fmt.Sscanf(strings.ReplaceAll(a.title, ",", ""), "Replace %d messages by this summary? %d → %d tokens", &n, &before, &after); err != nil {
					t.Fatalf("%q: %v", a.title, err)
				}
				if a.hidden > 0 || n == 0 || before != a.size || after >= before {
					t.Errorf("got %+v", a)
				}
			}
			compacted := 0
			for _, r := range c.Session().Reductions() {
				switch r.Stage {
				case "compact":
					if compacted++; compacted == 1 {
						want := fmt.Sprintf("Replace %d messages by this summary? %s → %s tokens", r.Archived, numbers.Thousands(r.Before), numbers.Thousands(r.After))
						if list[0].title != want {
							t.Errorf("asked %q, recorded %q", list[0].title, want)
						}
					}
				case "backstop":
				default:
					t.Errorf("hidden without approval: %+v", r.Reduced)
				}
			}
			if (compacted > 0) != (answer == 0) {
				t.Errorf("%d summaries are used", compacted)
			}
		})
	}
}
