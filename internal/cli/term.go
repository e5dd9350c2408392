package cli

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

var (
	bold  = ansi.Style{}.Bold()
	faint = ansi.Style{}.Faint()
)

// style returns text in a style where the output shows styles.
func style(on bool, s ansi.Style, text string) string {
	if !on || text == "" {
		return text
	}
	return s.Styled(text)
}

// truncate makes text printable on one line of n columns. Longer text ends with "…".
func truncate(s string, n int) string {
	if s = label(s); textWidth(s) <= n {
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

// wrap breaks printable text into lines of at most cols columns, between words. A word
// that is longer than a line is broken too. If cols is 0, the text stays on one line.
func wrap(text string, cols int) []string {
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
