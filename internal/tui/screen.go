package tui

import (
	"bytes"
	"io"
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// screen draws the frame at the bottom of the terminal, and lines above it that
// become part of the terminal's scrollback.
//
// It writes at once, in the goroutine that calls draw. The renderer of Bubble Tea draws
// at the ticks of a timer; whether it draws a frame that is tall for a moment then
// depends on the speed of the machine, and with it the position of all later lines.
type screen struct {
	w      io.Writer
	width  int
	frame  []string // as drawn
	row    int      // the line of the frame that has the cursor
	col    int
	hidden bool // whether the cursor is hidden
	err    error
}

// place is a position in the frame.
type place struct{ row, col int }

// The modes of the terminal while the screen is in use: pasted text is marked, and keys
// such as Alt+Enter are distinct.
const (
	modesOn  = ansi.SetModeBracketedPaste + ansi.SetModifyOtherKeys2 + "\x1b[>1u"
	modesOff = ansi.ResetModeBracketedPaste + ansi.ResetModifyOtherKeys + "\x1b[<1u"
)

// open sets the modes of the terminal.
func (s *screen) open() { s.write([]byte(modesOn)) }

// close removes the frame and resets the modes.
func (s *screen) close() {
	var b bytes.Buffer
	s.toRow(&b, 0)
	b.WriteString("\r\x1b[J" + modesOff)
	if s.hidden {
		b.WriteString(ansi.ShowCursor)
	}
	s.frame, s.row, s.col, s.hidden = nil, 0, 0, false
	s.write(b.Bytes())
}

// resize sets the width of the terminal. The terminal may have wrapped the lines of the
// frame again and removed those below the cursor, so the frame is removed from where it
// starts now. The next draw draws it.
func (s *screen) resize(width int) {
	s.width = width
	if len(s.frame) == 0 {
		return
	}
	up := s.col / max(width, 1)
	for _, line := range s.frame[:s.row] {
		up += max(1, (ansi.StringWidth(line)+width-1)/max(width, 1))
	}
	var b bytes.Buffer
	s.row = up
	s.toRow(&b, 0)
	b.WriteString("\r\x1b[J")
	s.frame, s.row, s.col = nil, 0, 0
	s.write(b.Bytes())
}

// draw prints lines above the frame and then shows the frame. cursor is nil to hide it.
func (s *screen) draw(above, frame []string, cursor *place) {
	var b bytes.Buffer
	if len(above) > 0 {
		s.toRow(&b, 0)
		b.WriteString("\r")
		for _, line := range above {
			s.writeLine(&b, line)
			b.WriteString("\r\n")
		}
		old := len(s.frame)
		for i, line := range frame {
			if i > 0 {
				b.WriteString("\r\n")
			}
			s.writeLine(&b, line)
		}
		s.row = max(0, len(frame)-1)
		if len(above)+len(frame) < old {
			s.eraseBelow(&b)
		}
	} else {
		for i, line := range frame {
			if i < len(s.frame) {
				if line == s.frame[i] {
					continue
				}
				s.toRow(&b, i)
				b.WriteString("\r")
			} else if i > 0 {
				s.toRow(&b, i-1)
				b.WriteString("\r\n") // scrolls at the bottom
				s.row = i
			}
			s.writeLine(&b, line)
		}
		if len(frame) < len(s.frame) {
			s.toRow(&b, max(0, len(frame)-1))
			s.eraseBelow(&b)
		}
	}
	drawn := b.Len() > 0
	s.frame = append(s.frame[:0], frame...)
	switch {
	case cursor == nil:
		s.col = 0
	case drawn || s.row != cursor.row || s.col != cursor.col:
		s.toRow(&b, min(cursor.row, len(frame)-1))
		b.WriteString("\r")
		if cursor.col > 0 {
			b.WriteString("\x1b[" + strconv.Itoa(cursor.col) + "C")
		}
		s.col = cursor.col
	}
	hide, show := "", ""
	if drawn && !s.hidden {
		hide, s.hidden = ansi.HideCursor, true
	}
	if cursor == nil && !s.hidden {
		hide, s.hidden = ansi.HideCursor, true
	}
	if cursor != nil && s.hidden {
		show, s.hidden = ansi.ShowCursor, false
	}
	s.write([]byte(hide + b.String() + show))
}

// writeLine replaces the line of the terminal whose first column has the cursor. Without
// automatic wrapping a line that the terminal draws wider than expected cannot move the
// others. Erasing before writing, and not only what is left after it, also removes the
// terminal's note that the line continues on the next one: if the window was made narrower
// and the program does not know it yet, the terminal has wrapped what was there.
func (s *screen) writeLine(b *bytes.Buffer, line string) {
	b.WriteString("\x1b[2K\x1b[?7l")
	b.WriteString(line)
	b.WriteString("\x1b[m\x1b[?7h")
}

// eraseBelow erases all lines after that of the cursor.
func (s *screen) eraseBelow(b *bytes.Buffer) { b.WriteString("\x1b[1B\r\x1b[J\x1b[1A") }

// toRow moves the cursor to a line of the frame.
func (s *screen) toRow(b *bytes.Buffer, row int) {
	switch {
	case row < s.row:
		b.WriteString("\x1b[" + strconv.Itoa(s.row-row) + "A")
	case row > s.row:
		b.WriteString("\x1b[" + strconv.Itoa(row-s.row) + "B")
	}
	s.row = row
}

func (s *screen) write(p []byte) {
	if len(p) == 0 || s.err != nil {
		return
	}
	_, s.err = s.w.Write(p)
}
