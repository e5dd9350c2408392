package tui

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// terminal understands what screen writes, and nothing else.
type terminal struct {
	width, height int
	lines         [][]string // the scrollback and the screen, a string for each cell
	top           int        // the first line of the screen
	row, col      int        // of the cursor, on the screen
	nowrap        bool
	wrapped       map[int]bool // lines that continue on the next one, as the terminal sees it
	hidden        bool
	bytes, writes int
	unknown       []string // sequences that screen must not write
}

func newTerminal(width, height int) *terminal {
	t := &terminal{width: width, height: height}
	t.grow()
	return t
}

func (t *terminal) grow() {
	for len(t.lines) < t.top+t.height {
		t.lines = append(t.lines, nil)
	}
}

func (t *terminal) Write(p []byte) (int, error) {
	t.bytes += len(p)
	t.writes++
	s, state := string(p), byte(0)
	for len(s) > 0 {
		seq, width, n, next := ansi.DecodeSequence(s, state, nil)
		s, state = s[n:], next
		switch {
		case width > 0:
			t.put(seq, width)
		case seq == "\r":
			t.col = 0
		case seq == "\n":
			if t.row++; t.row == t.height {
				t.row--
				t.top++
				t.grow()
			}
		case strings.HasPrefix(seq, "\x1b["):
			t.csi(seq)
		case seq != "" && seq[0] >= 0x80 && t.col > 0: // it combines with the last character
			t.lines[t.top+t.row][t.col-1] += seq
		default:
			t.unknown = append(t.unknown, strconv.Quote(seq))
		}
	}
	return len(p), nil
}

func (t *terminal) put(cell string, width int) {
	line := &t.lines[t.top+t.row]
	for len(*line) < min(t.col+width, t.width) {
		*line = append(*line, " ")
	}
	at := min(t.col, t.width-width)
	(*line)[at] = cell
	for i := 1; i < width; i++ {
		(*line)[at+i] = ""
	}
	if t.col += width; t.col >= t.width {
		if !t.nowrap {
			t.unknown = append(t.unknown, "a line that wraps")
		}
		t.col = t.width - 1
	}
}

func (t *terminal) csi(seq string) {
	n, _ := strconv.Atoi(strings.Trim(seq, "\x1b[ABCKJ"))
	n = max(n, 1)
	line := &t.lines[t.top+t.row]
	switch {
	case strings.HasSuffix(seq, "m") && !strings.Contains(seq, ">"):
	case seq == "\x1b[?7l", seq == "\x1b[?7h":
		t.nowrap = seq == "\x1b[?7l"
	case seq == "\x1b[?25l", seq == "\x1b[?25h":
		t.hidden = seq == "\x1b[?25l"
	case strings.Contains(modesOn+modesOff, seq):
	case seq == "\x1b[2K":
		*line = nil
		delete(t.wrapped, t.top+t.row)
	case seq == "\x1b[J":
		*line = (*line)[:min(t.col, len(*line))]
		for i := t.top + t.row + 1; i < len(t.lines); i++ {
			t.lines[i] = nil
			delete(t.wrapped, i)
		}
	case strings.HasSuffix(seq, "A"):
		t.row = max(0, t.row-n)
	case strings.HasSuffix(seq, "B"):
		t.row = min(t.height-1, t.row+n)
	case strings.HasSuffix(seq, "C"):
		t.col = min(t.width-1, t.col+n)
	default:
		t.unknown = append(t.unknown, strconv.Quote(seq))
	}
}

// text is the scrollback and the screen, without spaces at the end of lines and empty
// lines at the end.
func (t *terminal) text() string { return t.from(0) }

// screen is what can be seen.
func (t *terminal) screen() string { return t.from(t.top) }

func (t *terminal) from(first int) string {
	var lines []string
	for _, l := range t.lines[first:] {
		lines = append(lines, strings.TrimRight(strings.Join(l, ""), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n")
}
