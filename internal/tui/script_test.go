package tui

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// turn is what happens in a run of a script. It emits events until emit returns false.
type turn func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error

// script is a conversation whose runs and commands are given by a test.
type script struct {
	mu       sync.Mutex
	info     chat.Info
	meter    chat.Meter
	entries  []chat.Entry
	turns    []turn
	commands []chat.Command
	command  func(ctx context.Context, ask chat.Asker, line string, width int) chat.Reply

	inputs  []agent.Input // of all runs
	pending []agent.Input
	asked   int // entries that were asked for
}

func (s *script) Info() chat.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *script) Meter() (chat.Meter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter, nil
}

func (s *script) Entries(n int) ([]chat.Entry, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = n
	before := max(0, len(s.entries)-n)
	return s.entries[before:], before, nil
}

func (s *script) Run(ctx context.Context, ask chat.Asker, input ...agent.Input) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		s.mu.Lock()
		s.inputs = append(s.inputs, input...)
		var next turn
		if len(s.turns) > 0 {
			next, s.turns = s.turns[0], s.turns[1:]
		}
		s.mu.Unlock()
		for _, in := range input {
			if !yield(agent.Delivered{Input: in}, nil) {
				return
			}
		}
		open := true
		if next != nil {
			err := next(ctx, ask, func(e agent.Event) bool {
				open = open && yield(e, nil)
				return open
			})
			if err != nil && open {
				yield(nil, err)
				return
			}
		}
		if open {
			yield(agent.Done{Stop: "end_turn"}, nil)
		}
	}
}

func (s *script) Send(in agent.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, in)
}

func (s *script) TakePending() []agent.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending
	s.pending = nil
	return p
}

func (s *script) Commands() []chat.Command { return s.commands }

func (s *script) Command(ctx context.Context, ask chat.Asker, line string, width int) chat.Reply {
	return s.command(ctx, ask, line, width)
}

// sent returns the texts of the inputs of all runs.
func (s *script) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var texts []string
	for _, in := range s.inputs {
		texts = append(texts, in.Text)
	}
	return strings.Join(texts, "|")
}

// say is a turn that replies with a text, a word at a time.
func say(text string) turn {
	return func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		for _, w := range strings.SplitAfter(text, " ") {
			if !emit(agent.TextDelta{Text: w}) {
				return nil
			}
		}
		emit(agent.Replied{Text: text, Stop: "end_turn"})
		return nil
	}
}

// tester drives a model with keys, and a clock that only tests move. The events of
// goroutines arrive when a test waits for something.
type tester struct {
	*testing.T
	m     *model
	conv  *script
	term  *terminal
	msgs  chan tea.Msg
	clock time.Time
	quit  bool
}

func newTester(t *testing.T, conv *script, width, height int) *tester {
	t.Helper()
	return newTesterWith(t, conv, &history{}, width, height)
}

func newTesterWith(t *testing.T, conv *script, h *history, width, height int) *tester {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	tt := &tester{T: t, conv: conv, term: newTerminal(width, height), msgs: make(chan tea.Msg), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	m := newModel(ctx, conv, h, &unicodeSigns)
	tt.m = m
	m.display = &screen{w: tt.term}
	m.now = func() time.Time { return tt.clock }
	m.send = func(msg tea.Msg) {
		select {
		case tt.msgs <- msg:
		case <-ctx.Done():
		}
	}
	t.Cleanup(func() {
		cancel()
		m.jobs.Wait()
		if len(tt.term.unknown) > 0 {
			t.Errorf("the screen wrote %s", tt.term.unknown)
		}
	})
	tt.update(tea.WindowSizeMsg{Width: width, Height: height})
	tt.settle()
	return tt
}

func (tt *tester) update(msg tea.Msg) {
	tt.Helper()
	tt.m.Update(msg)
	tt.quit = tt.quit || tt.m.quitting
	if f, cursor := tt.m.frame(); len(f) > tt.m.height || cursor != nil && (cursor.row >= len(f) || cursor.col >= tt.m.width) {
		tt.Fatalf("frame of %d lines with cursor %v on a screen of %d×%d", len(f), cursor, tt.m.width, tt.m.height)
	}
}

// wait handles messages until something is the case.
func (tt *tester) wait(what string, is func() bool) {
	tt.Helper()
	late := time.After(2 * time.Minute) // a busy machine under the race detector
	for !is() {
		select {
		case msg := <-tt.msgs:
			tt.update(msg)
		case <-late:
			tt.Fatalf("waiting until %s; the screen is\n%s", what, tt.term.screen())
		}
	}
}

// settle handles messages until nothing runs, and draws.
func (tt *tester) settle() {
	tt.Helper()
	m := tt.m
	tt.wait("nothing runs", func() bool { return m.run == nil && m.command == nil && !m.metering && !m.loading })
	tt.update(tick{})
}

// shows waits until the screen has a text.
func (tt *tester) shows(text string) {
	tt.Helper()
	tt.wait(fmt.Sprintf("the screen shows %q", text), func() bool {
		tt.update(tick{})
		return strings.Contains(tt.term.text(), text)
	})
}

// lacks fails if the screen or the scrollback has a text.
func (tt *tester) lacks(text string) {
	tt.Helper()
	if strings.Contains(tt.term.text(), text) {
		tt.Fatalf("the screen shows %q:\n%s", text, tt.term.text())
	}
}

var keyCodes = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
	"right": tea.KeyRight, "backspace": tea.KeyBackspace, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome,
}

func keyPress(name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	for {
		switch {
		case strings.HasPrefix(name, "ctrl+"):
			k.Mod |= tea.ModCtrl
		case strings.HasPrefix(name, "alt+"):
			k.Mod |= tea.ModAlt
		case strings.HasPrefix(name, "shift+"):
			k.Mod |= tea.ModShift
		default:
			if c, ok := keyCodes[name]; ok {
				k.Code = c
				return k
			}
			k.Code = []rune(name)[0]
			if k.Mod == 0 {
				k.Text = name
			}
			return k
		}
		_, name, _ = strings.Cut(name, "+")
	}
}

// keys presses keys.
func (tt *tester) keys(names ...string) {
	tt.Helper()
	for _, n := range names {
		tt.update(keyPress(n))
	}
}

// types types a text.
func (tt *tester) types(text string) {
	tt.Helper()
	for _, r := range text {
		tt.update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func (tt *tester) pastes(text string) {
	tt.Helper()
	tt.update(tea.PasteMsg{Content: text})
}

// pause lets time pass without a key.
func (tt *tester) pause(d time.Duration) { tt.clock = tt.clock.Add(d) }

func (tt *tester) inputIs(want string) {
	tt.Helper()
	if got := tt.m.input.text(); got != want {
		tt.Fatalf("input %q, expected %q", got, want)
	}
}

func newScript(turns ...turn) *script {
	return &script{
		info:  chat.Info{Session: "01JD9XQZK3M", Model: "claude-sonnet-4-5", Provider: "anthropic", Dir: "/project"},
		meter: chat.Meter{Size: 84000, Window: 200000, Threshold: 160000, Kinds: []chat.Kind{{Name: "text", Tokens: 30000}, {Name: "results", Tokens: 54000}}},
		turns: turns,
	}
}
