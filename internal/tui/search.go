package tui

import (
	tea "charm.land/bubbletea/v2"
)

// search finds an input in the history, with Ctrl+R.
type search struct {
	history *history
	text    string
	found   string
	at      int // the index of found
	failed  bool
}

func newSearch(h *history) *search { return &search{history: h, at: len(h.entries)} }

// line is what is shown above the input.
func (s *search) line(width int) string {
	head := "search: "
	if s.failed {
		head = "no match: "
	}
	return cyan.Render(cut(head+label(s.text)+"  "+label(headOf(s.found, 500)), width, ""))
}

func (s *search) add(text string) {
	s.text += label(text)
	s.look(s.at + 1)
}

// look searches for an entry before the index.
func (s *search) look(before int) {
	if found, at, ok := s.history.find(s.text, before); ok && s.text != "" {
		s.found, s.at, s.failed = found, at, false
		return
	}
	s.failed = s.text != ""
}

// searchKey handles a key of the search.
func (m *model) searchKey(msg tea.KeyPressMsg) tea.Cmd {
	s := m.search
	switch msg.String() {
	case "esc", "ctrl+g":
		m.search = nil
	case "ctrl+r", "up":
		s.look(s.at)
	case "backspace":
		if r := []rune(s.text); len(r) > 0 {
			s.text = string(r[:len(r)-1])
			s.found = ""
			s.look(len(s.history.entries))
		}
	case "enter", "tab", "right", "left":
		m.search = nil
		if s.found != "" {
			m.input.set(s.found)
		}
	default:
		if msg.Text != "" {
			s.add(msg.Text)
		}
	}
	return nil
}
