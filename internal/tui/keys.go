package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/furlhq/furl/internal/chat"
)

// quitTime is how long the first Ctrl+C counts.
const quitTime = 2 * time.Second

// key handles a key.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "ctrl+c":
		m.ctrlC()
		return nil
	case "ctrl+z":
		m.display.close()
		m.away = true
		return tea.Suspend
	case "ctrl+l":
		m.display.close()
		m.display.open()
		return nil
	}
	m.interrupt = time.Time{}
	switch {
	case len(m.questions) > 0:
		return m.questionKey(msg)
	case m.search != nil:
		return m.searchKey(msg)
	}
	return m.inputKey(msg)
}

// ctrlC interrupts what runs, or clears the input. The second one in a row quits.
func (m *model) ctrlC() {
	now := m.now()
	if !m.interrupt.IsZero() && now.Sub(m.interrupt) < quitTime {
		m.quitting = true
		return
	}
	m.interrupt = now
	m.search = nil
	if len(m.questions) > 0 {
		m.answerQuestion(chat.Answer{}, errCanceled)
	}
	if !m.stop() {
		if !m.input.empty() {
			m.remember(m.input.value().Text)
		}
		m.input.clear()
		m.resizeInputs()
	}
	m.note = "Press Ctrl+C again to quit."
}

// inputKey handles a key of the input line.
func (m *model) inputKey(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	chord := m.chord
	m.chord = false
	if key != "tab" && key != "shift+tab" {
		m.completion = completion{}
	}
	switch key {
	case "enter":
		if strings.HasSuffix(m.input.beforeCursor(), `\`) {
			m.input.deleteBack(1)
			m.newline()
			return nil
		}
		return m.submit()
	case "alt+enter", "ctrl+j", "shift+enter":
		m.newline()
	case "tab":
		m.complete(1)
	case "shift+tab":
		m.complete(-1)
	case "esc":
		if !m.takeBack() && !m.stop() {
			m.history.at = len(m.history.entries)
		}
	case "ctrl+d":
		if m.input.empty() {
			m.quitting = true
			return nil
		}
		return m.input.key(msg)
	case "ctrl+o":
		m.unfold()
	case "ctrl+r":
		m.search = newSearch(m.history)
	case "ctrl+x":
		m.chord = true
	case "ctrl+e":
		if chord {
			return m.openEditor(&m.input)
		}
		return m.input.key(msg)
	case "up":
		if !m.input.atTop() {
			return m.input.key(msg)
		}
		if !m.takeBack() {
			m.earlier(-1)
		}
	case "down":
		if !m.input.atBottom() {
			return m.input.key(msg)
		}
		m.earlier(1)
	default:
		return m.input.key(msg)
	}
	return nil
}

func (m *model) newline() { m.input.insert("\n") }

// earlier shows another entry of the history.
func (m *model) earlier(by int) {
	if text, ok := m.history.move(by, m.input.text()); ok {
		m.input.set(text)
	}
}

// paste inserts pasted text.
func (m *model) paste(text string) {
	switch {
	case m.search != nil:
		m.search.add(cleanPaste(text))
	case len(m.questions) > 0:
		if q := m.questions[0]; q.edit != nil {
			q.edit.pasteText(text)
		} else if q.typing {
			m.pasteInput(text)
		}
	default:
		m.pasteInput(text)
	}
}

func (m *model) pasteInput(text string) {
	if err := m.input.paste(text); err != nil {
		m.printWarning(err.Error())
	}
}
