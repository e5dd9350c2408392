package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/tool"
)

// A whole run: thinking, text, a call, a reduction.
func TestRun(t *testing.T) {
	call := agent.Call{ID: "1", Name: "read_file", Input: json.RawMessage(`{"path":"main.go"}`)}
	conv := newScript(func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.ThinkingDelta{Text: "Let me see."})
		emit(agent.TextDelta{Text: "I read the **file**.\n\nThen I"})
		emit(agent.TextDelta{Text: " fix it.\n"})
		emit(agent.CallWriting{ID: "1", Name: "read_file"})
		emit(agent.Replied{Text: "…", Stop: "tool_use"})
		emit(agent.CallStarted{Call: call})
		emit(agent.CallResult{Call: call, Result: tool.Text(strings.Repeat("line\n", 120)), Took: 1200 * time.Millisecond})
		emit(agent.Context{Event: event.Compacted{Number: 1, MessagesArchived: 45, ContextSizeBefore: 170000, Summary: "We\n  fixed it."}})
		emit(agent.Context{Event: event.ContextUsage{CurrentSize: 20000, Limit: 200000}})
		emit(agent.TextDelta{Text: "Done."})
		emit(agent.Replied{Text: "Done.", Stop: "end_turn"})
		return nil
	})
	tt := newTester(t, conv, 80, 30)
	tt.types("Fix it")
	tt.keys("enter")
	tt.settle()
	want := `furl chat · anthropic · claude-sonnet-4-5 · /project

❯ Fix it

✻ Thinking · 3 words

I read the file.

Then I fix it.

⏺ read_file main.go · 120 lines · 1.2s

 ▤ Context Compacted #1 — 45 messages archived, ~150,000 tokens freed

Done.

Enter sends, Alt+Enter starts a line, /help lists commands
❯
claude-sonnet-4-5 · 01JD9XQZ · █████░░░░░░░░ 42% of 200k · text 36% results 64%`
	if got := tt.term.text(); got != want {
		t.Errorf("the screen is\n%s\nexpected\n%s", got, want)
	}
	if conv.sent() != "Fix it" {
		t.Errorf("sent %q", conv.sent())
	}

	// Ctrl+O prints the summary, then the call.
	tt.keys("ctrl+o")
	tt.shows("  Summary from LLM:\n  We\n    fixed it.")
	tt.keys("ctrl+o")
	tt.shows("Input\n  {\n    \"path\": \"main.go\"\n  }\nResult\n  line\n")
}

// The lines of a run are the same for any size of the pieces that arrive.
func TestPieces(t *testing.T) {
	text := "# Title\n\nSome *text* that is long enough to be wrapped at the width of this terminal.\n\n- one\n\n  more of one\n- two\n\n```go\nfunc f() {\n\n}\n```\n\nEnd"
	var want string
	for size := 1; size < len(text); size += 3 {
		conv := newScript(func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				emit(agent.TextDelta{Text: rest[:n]})
				rest = rest[n:]
			}
			emit(agent.Replied{Text: text})
			return nil
		})
		tt := newTester(t, conv, 50, 20)
		tt.types("Go")
		tt.keys("enter")
		tt.settle()
		got := tt.term.text()
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("pieces of %d bytes:\n%s\nexpected\n%s", size, got, want)
		}
	}
	for _, s := range []string{"# Title", "• one", "more of one", "func f() {", "End"} {
		if !strings.Contains(want, s) {
			t.Errorf("%q is missing in\n%s", s, want)
		}
	}
}

// A user may type while a run goes on. The input is queued, and can be taken back.
func TestQueue(t *testing.T) {
	step := make(chan struct{})
	conv := newScript()
	conv.turns = []turn{func(ctx context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.TextDelta{Text: "Working on it"})
		<-step
		for _, in := range conv.TakePending() {
			emit(agent.Delivered{Input: in})
		}
		emit(agent.Replied{})
		return nil
	}}
	tt := newTester(t, conv, 80, 24)
	tt.types("first")
	tt.keys("enter")
	tt.shows("Working on it")
	tt.types("second")
	tt.keys("enter")
	tt.shows("❯ second (queued)")
	tt.inputIs("")
	tt.types("third")
	tt.keys("enter")
	tt.shows("❯ third (queued)")
	tt.keys("up")
	tt.inputIs("second\nthird")
	if strings.Contains(tt.term.screen(), "queued") {
		t.Errorf("queued input is still shown:\n%s", tt.term.screen())
	}
	tt.keys("enter")
	close(step)
	tt.settle()
	tt.shows("❯ second\n  third\n")
}

// Input that is sent as a run ends starts the next run. After an interruption it goes
// back into the input.
func TestQueueAtEnd(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		started := make(chan struct{})
		step := make(chan struct{})
		conv := newScript(func(ctx context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
			close(started)
			emit(agent.TextDelta{Text: "Hm."}) // the tester handles it after started
			select {
			case <-step:
				return nil
			case <-ctx.Done():
				return fmt.Errorf("run: %w", ctx.Err())
			}
		}, say("Second reply."))
		tt := newTester(t, conv, 80, 24)
		tt.types("first")
		tt.keys("enter")
		tt.wait("the run has started", func() bool {
			select {
			case <-started:
				return true
			default:
				return false
			}
		})
		tt.types("second")
		tt.keys("enter")
		if interrupt {
			tt.keys("ctrl+c")
			tt.settle()
			tt.shows("Interrupted.")
			tt.inputIs("second")
			continue
		}
		close(step)
		tt.settle()
		tt.shows("Second reply.")
		if conv.sent() != "first|second" {
			t.Errorf("sent %q", conv.sent())
		}
	}
}

func TestInterruptAndQuit(t *testing.T) {
	conv := newScript(func(ctx context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.TextDelta{Text: "Half a sen"})
		<-ctx.Done()
		return fmt.Errorf("run: %w", context.Cause(ctx))
	})
	tt := newTester(t, conv, 80, 24)
	tt.types("Go")
	tt.keys("enter")
	tt.shows("Half a sen")
	tt.keys("esc")
	tt.settle()
	tt.shows("Half a sen\n\nInterrupted.\n")
	if tt.quit {
		t.Fatal("Esc has quit the chat")
	}
	tt.types("draft")
	tt.keys("ctrl+c")
	tt.inputIs("")
	tt.shows("Press Ctrl+C again to quit.")
	tt.pause(3 * time.Second)
	tt.keys("ctrl+c")
	if tt.quit {
		t.Fatal("two Ctrl+C with a pause of 3 seconds have quit the chat")
	}
	tt.keys("ctrl+c")
	if !tt.quit {
		t.Fatal("Ctrl+C twice does not quit")
	}

	tt = newTester(t, newScript(), 80, 24)
	tt.types("x")
	tt.keys("ctrl+d")
	if tt.quit {
		t.Fatal("Ctrl+D has quit with a text in the input")
	}
	tt.keys("backspace", "ctrl+d")
	if !tt.quit {
		t.Fatal("Ctrl+D does not quit with an empty input")
	}
}

func TestRunErrorAndResume(t *testing.T) {
	conv := newScript(func(context.Context, chat.Asker, func(agent.Event) bool) error {
		return errors.New("send request: 401 \x1b]52;c;aGk=\x07 unauthorized")
	}, say("Continued."))
	tt := newTester(t, conv, 80, 24)
	conv.info.Resumable = true
	tt.types("Go")
	tt.keys("enter")
	tt.settle()
	tt.shows("Error: send request: 401 ␛]52;c;aGk=␇ unauthorized")
	tt.shows("The last run has not ended. Enter continues it.")
	tt.keys("enter")
	tt.settle()
	tt.shows("Continued.")
}

func TestRetry(t *testing.T) {
	conv := newScript(func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.TextDelta{Text: "First try.\n\nIt br"})
		emit(agent.Retry{Attempt: 1, Wait: 2 * time.Second, Err: errors.New("connection reset")})
		emit(agent.TextDelta{Text: "Second try."})
		emit(agent.Replied{Text: "Second try."})
		return nil
	})
	tt := newTester(t, conv, 80, 24)
	tt.types("Go")
	tt.keys("enter")
	tt.settle()
	tt.shows("First try.\n\nRequest failed: connection reset. Retry 1 in 2s. The unfinished reply above is\nvoid.\n\nSecond try.\n")
	tt.lacks("It br")
}

func TestCommands(t *testing.T) {
	conv := newScript()
	conv.commands = []chat.Command{
		{Name: "context", Short: "Show the context"}, {Name: "compact", Usage: "[focus]", Short: "Summarize now"},
		{Name: "model", Usage: "NAME", Short: "Change the model", Values: func() []string { return []string{"claude-opus", "claude-sonnet", "gpt-5"} }},
	}
	conv.command = func(_ context.Context, _ chat.Asker, line string, width int) chat.Reply {
		switch line {
		case "/context":
			return chat.Reply{Text: fmt.Sprintf("\x1b[1mwidth\x1b[m %d\x1b]0;x\x07", width)}
		case "/compact":
			return chat.Reply{Text: "Compacting.", Events: conv.Run(t.Context(), nil)}
		case "/rewind":
			return chat.Reply{Reload: true, Input: "the old message"}
		case "/quit":
			return chat.Reply{Quit: true, Text: "Bye."}
		}
		return chat.Reply{Err: fmt.Errorf("unknown command %q", line)}
	}
	conv.turns = []turn{say("Compacted.")}
	conv.entries = []chat.Entry{{Kind: chat.User, Text: "Old entry"}}
	tt := newTester(t, conv, 80, 40)

	tt.types("/co")
	tt.shows("/context  /compact")
	tt.keys("tab")
	tt.shows("context  compact")
	tt.inputIs("/context")
	tt.keys("tab")
	tt.inputIs("/compact")
	tt.keys("ctrl+u")
	tt.types("/context")
	tt.shows("/context · Show the context")
	tt.keys("enter")
	tt.settle()
	tt.shows("❯ /context\n\nwidth 80\n")

	tt.types("/model c")
	tt.shows("/model NAME · Change the model")
	tt.keys("tab")
	tt.inputIs("/model claude-")
	tt.types("o")
	tt.keys("tab")
	tt.inputIs("/model claude-opus ")
	tt.keys("ctrl+u")

	tt.types("/compact")
	tt.keys("enter")
	tt.settle()
	tt.shows("Compacting.\n\nCompacted.\n")

	tt.types("/nothing")
	tt.keys("enter")
	tt.settle()
	tt.shows("Error: unknown command \"/nothing\"")

	tt.types("/usr/bin is a path")
	if tt.keys("enter"); conv.sent() != "/usr/bin is a path" {
		tt.settle()
	}
	tt.settle()
	if conv.sent() != "/usr/bin is a path" {
		t.Errorf("sent %q", conv.sent())
	}

	tt.types("/rewind")
	tt.keys("enter")
	tt.settle()
	tt.inputIs("the old message")
	if n := strings.Count(tt.term.text(), "❯ Old entry"); n != 2 {
		t.Errorf("the entries are shown %d times after a reload, expected 2:\n%s", n, tt.term.text())
	}
	tt.keys("ctrl+u")
	tt.types("/quit")
	tt.keys("enter")
	tt.wait("the chat quits", func() bool { return tt.quit })
	tt.shows("Bye.")
}

// Opening a long session reads and renders only its end.
func TestLongSession(t *testing.T) {
	conv := newScript()
	for i := range 10_000 {
		conv.entries = append(conv.entries, chat.Entry{Kind: chat.Text, Text: fmt.Sprintf("Entry **%d**\n\nmore", i)})
	}
	conv.entries[9_999].Hidden = true
	tt := newTester(t, conv, 80, 10)
	tt.shows("Entry 9999")
	tt.lacks("Entry 9980")
	if conv.asked > 100 {
		t.Errorf("asked for %d entries", conv.asked)
	}
	if !strings.Contains(tt.term.text(), "… 9,992 earlier entries") {
		t.Errorf("the number of earlier entries is missing:\n%s", tt.term.text())
	}
}

// The warning is printed once for each approach to the threshold.
func TestWarning(t *testing.T) {
	usage := func(sizes ...int) turn {
		return func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
			for _, n := range sizes {
				emit(agent.Context{Event: event.ContextUsage{CurrentSize: n, Limit: 200000}})
			}
			return nil
		}
	}
	conv := newScript(usage(120000, 130000, 140000, 150000, 20000, 129000))
	conv.meter.Size = 129000
	tt := newTester(t, conv, 100, 40)
	tt.shows("The context is at 80% of the size at which it is reduced (129k of 160k tokens).")
	tt.types("Go")
	tt.keys("enter")
	tt.settle()
	if n := strings.Count(tt.term.text(), "The context is at"); n != 2 {
		t.Errorf("%d warnings, expected one at the start and one after the reduction:\n%s", n, tt.term.text())
	}
}

// Every size of the terminal can be used, in any state.
func TestSizes(t *testing.T) {
	step := make(chan struct{})
	conv := newScript(func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.TextDelta{Text: strings.Repeat("漢字 and 👨‍👩‍👧 and e\u0301 words. ", 60)})
		<-step
		_, err := ask(ctx, chat.Question{Title: "Which?", Body: strings.Repeat("line\n", 50), Options: make([]chat.Option, 9)})
		return err
	})
	tt := newTester(t, conv, 80, 24)
	sizes := func() {
		for _, s := range [][2]int{{200, 60}, {20, 5}, {1, 1}, {80, 24}, {40, 3}, {33, 11}, {0, 0}, {100, 12}} {
			tt.term = newTerminal(max(s[0], 80), max(s[1], 24)) // terminals differ in what they do to lines; none is asserted here
			tt.m.display.(*screen).w = tt.term
			tt.update(tea.WindowSizeMsg{Width: s[0], Height: s[1]})
			tt.types("x")
			tt.keys("pgdown", "down")
		}
	}
	sizes()
	tt.types("Go")
	tt.keys("enter")
	tt.wait("text arrives", func() bool { return tt.m.stream.paragraphs.rest != "" })
	sizes()
	close(step)
	tt.wait("the question appears", func() bool { return len(tt.m.questions) == 1 })
	sizes()
	tt.keys("esc")
	tt.settle()
}
