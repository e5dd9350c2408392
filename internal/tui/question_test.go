package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// asks is a turn that asks a question and replies with the answer.
func asks(q chat.Question) turn {
	return func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error {
		a, err := ask(ctx, q)
		emit(agent.Replied{Text: fmt.Sprintf("Answer: %d %q %v", a.Option, a.Text, err)})
		return nil
	}
}

var approve = chat.Question{
	Title: "Edit main.go", Body: "One file.", Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b[2J\n+new\n",
	Options: []chat.Option{{Label: "Yes", Key: "y"}, {Label: "No, because", Key: "n", Text: true}, {Label: "Never"}},
}

func TestQuestion(t *testing.T) {
	for _, test := range []struct {
		name  string
		keys  []string
		types string
		then  []string
		want  string
	}{
		{"enter", []string{"enter"}, "", nil, `Answer: 0 "" <nil>`},
		{"key", []string{"y"}, "", nil, `Answer: 0 "" <nil>`},
		{"arrows", []string{"down", "down", "enter"}, "", nil, `Answer: 2 "" <nil>`},
		{"around", []string{"up", "enter"}, "", nil, `Answer: 2 "" <nil>`},
		{"text", []string{"n"}, "not now", []string{"enter"}, `Answer: 1 "not now" <nil>`},
		{"back", []string{"n", "x", "esc", "up", "enter"}, "", nil, `Answer: 0 "" <nil>`},
		{"esc", []string{"esc"}, "", nil, `Answer: 0 "" the question was canceled`},
		{"other key", []string{"z", "y"}, "", nil, `Answer: 0 "" <nil>`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tt := newTester(t, newScript(asks(approve)), 80, 24)
			tt.types("Go")
			tt.keys("enter")
			tt.shows("Edit main.go\n  One file.\n\n  --- a\n  +++ b\n  @@ -1 +1 @@\n  -old␛[2J\n  +new\n❯ Yes (y)\n  No, because (n)\n  Never\n")
			tt.pause(time.Second)
			tt.keys(test.keys...)
			tt.types(test.types)
			tt.keys(test.then...)
			tt.settle()
			tt.shows(test.want)
		})
	}
}

// A question must not take the keys of a user who is typing when it appears.
func TestQuestionGuard(t *testing.T) {
	started := make(chan struct{})
	conv := newScript(func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.ThinkingDelta{Text: "Hm."})
		<-started
		return asks(approve)(ctx, ask, emit)
	})
	tt := newTester(t, conv, 80, 24)
	tt.types("Go")
	tt.keys("enter")
	tt.shows("Hm.")
	tt.types("oka")
	close(started)
	tt.shows("❯ Yes (y)")
	for _, k := range []string{"y", " ", "n", "enter", "enter", "y"} { // without a pause of 500 ms
		tt.pause(400 * time.Millisecond)
		tt.keys(k)
	}
	if len(tt.m.questions) != 1 || tt.m.questions[0].selected != 0 || tt.m.questions[0].edit != nil {
		t.Fatal("keys that were typed as the question appeared have changed it")
	}
	tt.inputIs("okay ny") // letters go where the user was typing
	tt.pause(499 * time.Millisecond)
	tt.keys("enter")
	if len(tt.m.questions) != 1 {
		t.Fatal("Enter after 499 ms has answered the question")
	}
	tt.pause(500 * time.Millisecond)
	tt.keys("enter")
	tt.settle()
	tt.shows(`Answer: 0 ""`)
	tt.inputIs("okay ny")
}

// A question ends with its context, and the next one is shown.
func TestQuestionGone(t *testing.T) {
	conv := newScript(func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error {
		gone, cancel := context.WithCancel(ctx)
		result := make(chan error)
		go func() {
			_, err := ask(gone, chat.Question{Title: "First", Options: approve.Options})
			result <- err
		}()
		emit(agent.TextDelta{Text: "x"})
		cancel()
		emit(agent.Replied{Text: fmt.Sprint("Gone: ", <-result)})
		return asks(chat.Question{Title: "Second", Options: approve.Options})(ctx, ask, emit)
	})
	tt := newTester(t, conv, 80, 24)
	tt.types("Go")
	tt.keys("enter")
	tt.shows("Second")
	tt.lacks("First · ")
	tt.pause(time.Second)
	tt.keys("ctrl+c") // cancels the question and interrupts the run
	tt.settle()
	tt.shows("Second · canceled")
}

func TestQuestionScroll(t *testing.T) {
	var body strings.Builder
	for i := range 50 {
		fmt.Fprintf(&body, "body line %d.\n", i+1)
	}
	tt := newTester(t, newScript(asks(chat.Question{Title: "Long", Body: body.String(), Options: approve.Options})), 80, 20)
	tt.types("Go")
	tt.keys("enter")
	tt.shows("lines 1 to 11 of 50")
	tt.pause(time.Second)
	tt.keys("pgdown", "pgdown")
	tt.shows("lines 21 to 31 of 50")
	tt.keys("pgdown", "pgdown", "pgdown", "pgdown")
	tt.shows("body line 50.")
	tt.keys("pgup")
	tt.shows("lines 30 to 40 of 50")
	tt.keys("y")
	tt.settle()
}

func TestQuestionEdit(t *testing.T) {
	edit := chat.Question{Title: "Summary", Body: "one\ntwo", Edit: true}
	tt := newTester(t, newScript(asks(edit), asks(edit)), 80, 24)
	tt.types("Go")
	tt.keys("enter")
	tt.shows("❯ one\n  two\nCtrl+S accepts")
	tt.pause(time.Second)
	tt.keys("down", "home")
	tt.types("X")
	tt.keys("enter")
	tt.keys("ctrl+s")
	tt.settle()
	tt.shows(`Answer: 0 "one\nX\ntwo" <nil>`)
	tt.types("Again")
	tt.keys("enter")
	tt.wait("the question appears", func() bool { return len(tt.m.questions) == 1 })
	tt.keys("esc")
	tt.settle()
	tt.shows("the question was canceled")
}

// A long command cannot be approved before its end and what furl says about it were shown,
// in a window of any height. It can be refused at any time.
func TestQuestionIsReadBeforeYes(t *testing.T) {
	var command strings.Builder
	for i := range 60 {
		fmt.Fprintf(&command, "echo step %d\n", i+1)
	}
	q := chat.Question{Title: "Run a command?", Body: command.String() + "rm -rf build\n\nThe command has all rights.", Options: []chat.Option{
		{Label: "Yes", Key: "y", AfterEnd: true}, {Label: "Yes, always", Key: "a", AfterEnd: true}, {Label: "No", Key: "n"},
	}}
	for _, height := range []int{6, 9, 20, 100} {
		for _, key := range []string{"y", "a", "enter"} {
			tt := newTester(t, newScript(asks(q)), 80, height)
			tt.types("Go")
			tt.keys("enter")
			tt.shows("❯ Yes (y)")
			tt.pause(time.Second)
			for presses := 0; len(tt.m.questions) > 0; presses++ {
				if presses > 70 {
					t.Fatalf("height %d: %s never approves", height, key)
				}
				if !tt.m.questions[0].seen {
					tt.lacks("The command has all rights.")
				}
				tt.keys(key)
				if height == 100 && presses == 0 && len(tt.m.questions) > 0 {
					t.Fatal("all of it was shown, and it cannot be approved")
				}
				if height < 100 && presses == 0 && len(tt.m.questions) == 0 {
					t.Fatalf("height %d: %s approves what was not shown", height, key)
				}
			}
			tt.settle()
		}
		tt := newTester(t, newScript(asks(q), asks(q)), 80, height)
		tt.types("Go")
		tt.keys("enter")
		tt.shows("❯ Yes (y)")
		tt.pause(time.Second)
		tt.keys("end")
		tt.shows("The command has all rights.")
		tt.keys("home", "n")
		tt.settle()
		tt.shows("No")
	}
	if got := endsOf(strings.Repeat("é", 100)+"END", 21); !strings.HasSuffix(got, "éEND") || !strings.Contains(got, "bytes are not shown") || len(got) > 60 {
		t.Errorf("a text that is too long is shown as %q", got)
	}
}
