package tui

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// The styles use the 16 colors of the terminal, which fit its background.
var (
	dim      = lipgloss.NewStyle().Faint(true)
	bold     = lipgloss.NewStyle().Bold(true)
	italic   = lipgloss.NewStyle().Faint(true).Italic(true)
	red      = lipgloss.NewStyle().Foreground(lipgloss.Red)
	green    = lipgloss.NewStyle().Foreground(lipgloss.Green)
	yellow   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	cyan     = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	userText = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Blue)
	// A marker has a background of its own.
	markerText = lipgloss.NewStyle().Foreground(lipgloss.Black).Background(lipgloss.Cyan)
)

// paint applies a style to each line by itself.
func paint(s lipgloss.Style, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			l = s.Render(l)
		}
		out[i] = l
	}
	return out
}

// signs are the characters that the screen draws with.
type signs struct {
	prompt, call, user, thought, marker, failed, selected, dot, more, rule string
	full, free                                                             string
	spinner                                                                []string
}

var unicodeSigns = signs{
	prompt: "❯", call: "⏺", user: "❯", thought: "✻", marker: "▤", failed: "✗", selected: "❯", dot: "·", more: "…", rule: "─",
	full: "█", free: "░",
	spinner: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
}

var asciiSigns = signs{
	prompt: ">", call: "*", user: ">", thought: "~", marker: "#", failed: "x", selected: ">", dot: "-", more: "...", rule: "-",
	full: "#", free: ".",
	spinner: []string{"|", "/", "-", "\\"},
}

// signsFor chooses the characters by the environment: ASCII if the terminal is dumb or
// its character set is not UTF-8.
func signsFor(getenv func(string) string) *signs {
	if getenv("TERM") == "dumb" {
		return &asciiSigns
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			if strings.Contains(v, "utf-8") || strings.Contains(v, "utf8") {
				return &unicodeSigns
			}
			return &asciiSigns
		}
	}
	return &unicodeSigns // macOS and Windows often set none of them
}
