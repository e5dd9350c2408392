package tui

import "testing"

// A terminal that is made narrower wraps what it shows, and marks these lines as continued
// until they are erased whole. The program learns of the new size only later. What it prints
// until then must not be joined with the line below.
func TestPrintedLinesAreNotJoined(t *testing.T) {
	term := newTerminal(40, 10)
	s := &screen{w: term, width: 40}
	s.draw(nil, []string{"a long line of the frame", "❯ ", "status"}, &place{1, 2})
	term.wrapped = map[int]bool{0: true, 2: true}
	s.draw([]string{"one", "two", "three"}, []string{"hint", "❯ ", "status"}, &place{1, 2})
	if len(term.wrapped) > 0 {
		t.Errorf("lines %v are joined with the next ones", term.wrapped)
	}
	if got, want := term.text(), "one\ntwo\nthree\nhint\n❯\nstatus"; got != want {
		t.Errorf("the screen has\n%s\nwant\n%s", got, want)
	}
}
