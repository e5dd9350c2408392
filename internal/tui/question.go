package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/furlhq/furl/internal/chat"
)

// guardTime is how long no key must have been pressed before a question takes keys.
// A question appears while the user types, and must not be answered by that.
const guardTime = 500 * time.Millisecond

var (
	errCanceled = errors.New("the question was canceled")
	errQuit     = errors.New("the chat has ended")
)

// question is a question that waits for its answer.
type question struct {
	chat.Question
	ask      asked
	selected int
	scroll   int       // the first line of the body that is shown
	seen     bool      // the end of the body was shown
	lastKey  time.Time // of the last key, or when the question appeared
	ready    bool      // lastKey was long enough ago at a key
	typing   bool      // the user was typing when the question appeared
	edit     *input    // for a text: of Edit, or of the selected option
	chord    bool      // Ctrl+X was pressed

	body  []string // cached, for width
	width int
}

// asked is a question of another goroutine.
type asked struct {
	ctx    context.Context
	q      chat.Question
	answer chan answered // of capacity 1
}

type answered struct {
	a   chat.Answer
	err error
}

// questionGone reports that nobody waits for the answer any more.
type questionGone struct{ answer chan answered }

// asker returns a function that asks the user.
func asker(send func(tea.Msg)) chat.Asker {
	return func(ctx context.Context, q chat.Question) (chat.Answer, error) {
		if err := ctx.Err(); err != nil {
			return chat.Answer{}, fmt.Errorf("ask the user: %w", context.Cause(ctx))
		}
		if !q.Edit && len(q.Options) == 0 {
			return chat.Answer{}, errors.New("ask the user: the question has no options")
		}
		q.Options = slices.Clone(q.Options)
		answer := make(chan answered, 1)
		send(asked{ctx, q, answer})
		select {
		case a := <-answer:
			return a.a, a.err
		case <-ctx.Done():
			send(questionGone{answer})
			return chat.Answer{}, fmt.Errorf("ask the user: %w", context.Cause(ctx))
		}
	}
}

// ask shows a question, after those that wait.
func (m *model) ask(a asked) {
	if m.quitting {
		a.answer <- answered{err: errQuit}
		return
	}
	m.questions = append(m.questions, &question{Question: a.q, ask: a})
	if len(m.questions) == 1 {
		m.showQuestion()
	}
}

// showQuestion prepares the first question.
func (m *model) showQuestion() {
	if len(m.questions) == 0 {
		return
	}
	q := m.questions[0]
	q.lastKey = m.now()
	q.typing = !m.input.empty()
	if q.Default >= 0 && q.Default < len(q.Options) {
		q.selected = q.Default
	}
	if q.Edit {
		in := newInput(m.signs.prompt)
		in.set(q.Body)
		in.area.MoveToBegin()
		q.edit = &in
	}
	m.resizeInputs()
}

// answerQuestion ends the first question.
func (m *model) answerQuestion(a chat.Answer, err error) {
	q := m.questions[0]
	m.questions = m.questions[1:]
	q.ask.answer <- answered{a, err}
	title := label(q.Title)
	switch {
	case err != nil:
		m.printNote(title + " " + m.signs.dot + " canceled")
	case q.Edit:
		m.printNote(title + " " + m.signs.dot + " accepted")
	default:
		note := title + " " + m.signs.dot + " " + label(q.Options[a.Option].Label)
		if a.Text != "" {
			note += ": " + label(headOf(a.Text, 500))
		}
		m.printNote(note)
	}
	m.showQuestion()
}

// dropQuestion removes a question that nobody waits for.
func (m *model) dropQuestion(answer chan answered) {
	i := slices.IndexFunc(m.questions, func(q *question) bool { return q.ask.answer == answer })
	if i < 0 {
		return
	}
	m.questions = slices.Delete(m.questions, i, i+1)
	if i == 0 {
		m.showQuestion()
	}
}

// questionKey handles a key while a question is shown.
func (m *model) questionKey(msg tea.KeyPressMsg) tea.Cmd {
	q := m.questions[0]
	now := m.now()
	if !q.ready && now.Sub(q.lastKey) < guardTime {
		switch msg.String() {
		case "esc", "ctrl+c":
		default:
			q.lastKey = now
			if q.typing && !q.Edit && (msg.Text != "" || msg.String() == "backspace") {
				return m.input.key(msg) // the user goes on typing
			}
			return nil
		}
	}
	q.ready, q.lastKey = true, now
	if q.edit != nil {
		return m.questionText(q, msg)
	}
	page := max(1, m.questionRows(q)-1)
	switch key := msg.String(); key {
	case "esc":
		m.answerQuestion(chat.Answer{}, errCanceled)
	case "up", "shift+tab", "ctrl+p":
		q.selected = (q.selected + len(q.Options) - 1) % len(q.Options)
	case "down", "tab", "ctrl+n":
		q.selected = (q.selected + 1) % len(q.Options)
	case "pgup":
		q.scroll = max(0, q.scroll-page)
	case "pgdown", "space":
		q.scroll += page // bounded where it is drawn
	case "home":
		q.scroll = 0
	case "end":
		q.scroll = len(m.questionBody(q))
	case "enter":
		m.chooseOption(q, q.selected)
	default:
		for i, o := range q.Options {
			if o.Key != "" && (strings.EqualFold(msg.Text, o.Key) || key == o.Key) {
				m.chooseOption(q, i)
				break
			}
		}
	}
	return nil
}

// chooseOption answers with an option, or asks for its text. It scrolls if the user has not
// seen yet what the option is about.
func (m *model) chooseOption(q *question, i int) {
	q.selected = i
	if q.Options[i].AfterEnd && !q.seen {
		q.scroll += max(1, m.questionRows(q)-1)
		return
	}
	if !q.Options[i].Text {
		m.answerQuestion(chat.Answer{Option: i}, nil)
		return
	}
	in := newInput(m.signs.prompt)
	q.edit = &in
	m.resizeInputs()
}

// questionText handles a key while a text is asked for.
func (m *model) questionText(q *question, msg tea.KeyPressMsg) tea.Cmd {
	chord := q.chord
	q.chord = false
	accept := func() {
		m.answerQuestion(chat.Answer{Option: q.selected, Text: q.edit.value().Text}, nil)
	}
	switch key := msg.String(); {
	case key == "esc" && !q.Edit:
		q.edit = nil // back to the options
	case key == "esc":
		m.answerQuestion(chat.Answer{}, errCanceled)
	case key == "ctrl+x":
		q.chord = true
	case key == "ctrl+e" && chord:
		return m.openEditor(q.edit)
	case key == "ctrl+s", key == "ctrl+d", key == "enter" && !q.Edit:
		accept()
	case key == "enter", key == "alt+enter", key == "ctrl+j", key == "shift+enter":
		q.edit.insert("\n")
	default:
		return q.edit.key(msg)
	}
	return nil
}

// questionBody returns the lines of the body and the diff.
func (m *model) questionBody(q *question) []string {
	if q.width == m.width {
		return q.body
	}
	q.width, q.body = m.width, nil
	if q.Edit {
		return nil
	}
	if body := strings.TrimRight(clean(endsOf(q.Body, maxUnfoldText)), "\n"); body != "" {
		q.body = indent(wrapPlain(body, m.width-2), "  ", "  ")
	}
	if q.Diff != "" {
		if q.body != nil {
			q.body = append(q.body, "")
		}
		q.body = append(q.body, indent(diffLines(endsOf(q.Diff, maxUnfoldText), m.width-2), "  ", "  ")...)
	}
	return q.body
}

// questionRows is how many lines of the body fit.
func (m *model) questionRows(q *question) int {
	below := len(q.Options)
	if q.edit != nil {
		below = q.edit.area.Height()
	}
	rows := m.height - 4 - below // title, hint, status and a line of the scrollback
	if m.height >= roomyHeight {
		rows--
	}
	if n := len(m.questionBody(q)); n > rows {
		rows-- // the position
	}
	if slices.ContainsFunc(q.Options, func(o chat.Option) bool { return o.AfterEnd }) {
		return max(rows, 1) // else nobody could read to the end
	}
	return max(rows, 0)
}

// endsOf returns a text of at most about n bytes: a longer one without its middle.
func endsOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := headOf(s, n/2), s[len(s)-n/2:]
	for len(tail) > 0 && tail[0]&0xc0 == 0x80 {
		tail = tail[1:]
	}
	return head + fmt.Sprintf("\n[%d bytes are not shown]\n", len(s)-len(head)-len(tail)) + tail
}

// questionFrame draws the first question, in place of the input.
func (m *model) questionFrame() (lines []string, cursor *place) {
	q := m.questions[0]
	title := label(q.Title)
	if n := len(m.questions); n > 1 {
		title += fmt.Sprintf(" (%d more)", n-1)
	}
	lines = append(lines, bold.Render(cut(title, m.width, m.signs.more)))
	body := m.questionBody(q)
	rows := m.questionRows(q)
	if len(body) <= rows {
		lines = append(lines, body...)
		q.seen = true
	} else {
		q.scroll = max(0, min(q.scroll, len(body)-rows))
		lines = append(lines, body[q.scroll:q.scroll+rows]...)
		q.seen = q.seen || q.scroll+rows == len(body)
		at := fmt.Sprintf("  lines %d to %d of %d %s PgUp and PgDn scroll", q.scroll+1, q.scroll+rows, len(body), m.signs.dot)
		lines = append(lines, dim.Render(cut(at, m.width, "")))
	}
	hint := "Up and Down select, Enter chooses, Esc cancels"
	if q.edit != nil {
		text, at := q.edit.lines()
		cursor = &place{len(lines) + at.row, at.col}
		lines = append(lines, text...)
		hint = "Enter sends, Esc goes back"
		if q.Edit {
			hint = "Ctrl+S accepts, Esc cancels, Ctrl+X Ctrl+E opens your editor"
		}
	} else {
		if !q.seen && q.Options[q.selected].AfterEnd {
			hint = "Space scrolls and End shows the end, before Yes can be chosen; Esc cancels"
		}
		shown := q.Options
		first := 0
		if room := max(1, m.height-2-len(lines)); len(shown) > room { // keep the selected one visible
			first = max(0, min(q.selected-room/2, len(shown)-room))
			shown = shown[first : first+room]
		}
		for i, o := range shown {
			text := label(o.Label)
			if o.Key != "" {
				text += " (" + label(o.Key) + ")"
			}
			if i+first == q.selected {
				lines = append(lines, cyan.Render(cut(m.signs.selected+" "+text, m.width, m.signs.more)))
			} else {
				lines = append(lines, cut("  "+text, m.width, m.signs.more))
			}
		}
	}
	return append(lines, dim.Render(cut(hint, m.width, ""))), cursor
}
