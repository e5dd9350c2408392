package tui

import "strings"

// isDiff reports that text has a unified diff.
func isDiff(text string) bool {
	return strings.HasPrefix(text, "@@ -") || strings.Contains(text, "\n@@ -")
}

// diffLines colors a unified diff. Long lines are wrapped.
func diffLines(diff string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(clean(diff), "\n"), "\n") {
		wrapped := wrapPlain(line, width)
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			wrapped = paint(bold, wrapped)
		case strings.HasPrefix(line, "+"):
			wrapped = paint(green, wrapped)
		case strings.HasPrefix(line, "-"):
			wrapped = paint(red, wrapped)
		case strings.HasPrefix(line, "@@"):
			wrapped = paint(cyan, wrapped)
		}
		out = append(out, wrapped...)
	}
	return out
}
