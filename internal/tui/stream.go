package tui

import (
	"strings"

	"charm.land/lipgloss/v2"
)

const (
	streamTail   = 16 << 10 // bytes that are wrapped again after a resize
	streamRows   = 500      // wrapped rows that are kept
	thinkingRows = 4        // of thinking that are shown
)

// stream is the part of a reply that has arrived and is not finished. Its end is shown
// in the frame.
type stream struct {
	paragraphs paragraphs
	thinking   strings.Builder
	flushed    bool // paragraphs of the reply are printed
	view       tail
}

// text adds text of the reply and returns the paragraphs that it finishes.
func (s *stream) text(text string) []string {
	done := s.paragraphs.add(text)
	if len(done) == 0 {
		s.view.add(text)
		return nil
	}
	s.flushed = true
	s.view.set(s.paragraphs.rest)
	return done
}

// think adds thinking.
func (s *stream) think(text string) {
	if s.thinking.Len() == 0 {
		s.view.set("")
	}
	s.thinking.WriteString(text)
	s.view.add(text)
}

// endThinking returns the thinking, "" if there is none.
func (s *stream) endThinking() string {
	text := s.thinking.String()
	if text != "" {
		s.thinking.Reset()
		s.view.set(s.paragraphs.rest)
	}
	return text
}

// end returns the rest of the text and starts anew.
func (s *stream) end() string {
	rest := s.paragraphs.end()
	s.flushed = false
	s.view.set("")
	return rest
}

func (s *stream) resize(width int) {
	s.view.width = width
	if s.thinking.Len() > 0 {
		s.view.set(s.thinking.String())
	} else {
		s.view.set(s.paragraphs.rest)
	}
}

// lines returns the last rows of the text.
func (s *stream) lines(rows int) []string {
	style := lipgloss.NewStyle()
	if s.thinking.Len() > 0 {
		style, rows = italic, min(rows, thinkingRows)
	}
	return paint(style, s.view.lines(rows))
}

// tail wraps the end of a text that grows. Only the line at the end is wrapped again.
type tail struct {
	width int
	done  []string // the rows of complete lines
	last  string   // the line at the end
	rows  []string // its rows, nil if they are not known
}

func (t *tail) set(text string) {
	t.done, t.last, t.rows = t.done[:0], "", nil
	t.add(tailOf(text, streamTail))
}

func (t *tail) add(text string) {
	t.rows = nil
	for {
		line, rest, ok := strings.Cut(text, "\n")
		t.last = tailOf(t.last+line, streamTail)
		if !ok {
			return
		}
		t.done = append(t.done, wrapPlain(clean(t.last), t.width)...)
		if len(t.done) > 2*streamRows {
			t.done = append(t.done[:0], t.done[len(t.done)-streamRows:]...)
		}
		t.last, text = "", rest
	}
}

func (t *tail) lines(n int) []string {
	if t.rows == nil && t.last != "" {
		t.rows = wrapPlain(clean(t.last), t.width)
	}
	if n <= 0 {
		return nil
	}
	all := append(t.done[max(0, len(t.done)-n):len(t.done):len(t.done)], t.rows...)
	return all[max(0, len(all)-n):]
}
