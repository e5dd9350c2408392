package tui

import "strings"

// markerLines draws a marker.
func markerLines(text string, width int, sg *signs) []string {
	if sg == &asciiSigns {
		text = strings.ReplaceAll(text, "—", "-")
	}
	lines := wrapPlain(sg.marker+" "+clean(text), width-2)
	for i, l := range lines {
		lines[i] = markerText.Render(" " + l + " ")
	}
	return lines
}

// warningLines draws a warning.
func warningLines(text string, width int) []string {
	return paint(yellow, wrapPlain(clean(text), width))
}
