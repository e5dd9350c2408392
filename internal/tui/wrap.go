package tui

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// wrapPlain wraps text without styles into lines of at most width columns. It breaks
// long words.
func wrapPlain(text string, width int) []string {
	return fit(strings.Split(ansi.Wrap(text, max(width, 1), ""), "\n"), width)
}

// wrapStyled is wrapPlain for text with styles: each line sets its own.
func wrapStyled(text string, width int) []string {
	return fit(strings.Split(lipgloss.Wrap(text, max(width, 1), ""), "\n"), width)
}

// fit cuts lines that are too wide: ansi.Wrap leaves some with spaces at their start.
func fit(lines []string, width int) []string {
	for i := 0; i < len(lines); i++ {
		if ansi.StringWidth(lines[i]) > max(width, 1) {
			lines = slices.Replace(lines, i, i+1, strings.Split(ansi.Hardwrap(lines[i], max(width, 2), true), "\n")...)
		}
	}
	return lines
}

// cut shortens text to one line of at most width columns.
func cut(text string, width int, tail string) string {
	if width <= 0 {
		return ""
	}
	if ansi.StringWidth(tail) >= width {
		tail = ""
	}
	return ansi.Truncate(text, width, tail)
}

// indent puts first before the first line and rest before the others.
func indent(lines []string, first, rest string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if i == 0 {
			out[i] = first + l
		} else {
			out[i] = rest + l
		}
	}
	return out
}

// firstLines returns at most n lines, and how many it leaves out.
func firstLines(lines []string, n int) ([]string, int) {
	if len(lines) <= n {
		return lines, 0
	}
	return lines[:n], len(lines) - n
}

// tailOf returns the end of s, at most n bytes, starting with a whole character.
func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for i := 0; i < len(s) && i < 4; i++ {
		if s[i]&0xc0 != 0x80 {
			return s[i:]
		}
	}
	return s
}

// headOf returns the start of s, at most n bytes, ending with a whole character.
func headOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
