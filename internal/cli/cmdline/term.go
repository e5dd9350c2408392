package cmdline

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Bold and Faint are the styles of text on a terminal.
var (
	Bold  = ansi.Style{}.Bold()
	Faint = ansi.Style{}.Faint()
)

// Style returns text in a style where the output shows styles.
func Style(on bool, s ansi.Style, text string) string {
	if !on || text == "" {
		return text
	}
	return s.Styled(text)
}

// Truncate makes text printable on one line of n columns. Longer text ends with "…".
func Truncate(s string, n int) string {
	if s = Label(s); textWidth(s) <= n {
		return s
	}
	return ansi.Truncate(s, n, "…")
}

// textWidth returns the number of columns of a text. It is ansi.StringWidth, which takes
// most of the time of a long table, with a shorter way for the usual characters.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		if (r < ' ' || r > '~') && r != '…' && r != '└' {
			return ansi.StringWidth(s)
		}
		n++
	}
	return n
}

// Wrap breaks printable text into lines of at most cols columns, between words. A word
// that is longer than a line is broken too. If cols is 0, the text stays on one line.
func Wrap(text string, cols int) []string {
	if cols <= 0 {
		return []string{text}
	}
	// Wrap breaks after hyphens, and a flag must stay whole.
	const hyphen = "\ufdd0" // printable text has none
	text = strings.ReplaceAll(strings.TrimRight(text, " "), "-", hyphen)
	text = ansi.Hardwrap(ansi.Wrap(text, cols, ""), cols, true) // Wrap alone leaves an indented long word too long
	lines := strings.Split(strings.ReplaceAll(text, hyphen, "-"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}
