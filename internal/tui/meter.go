package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/numbers"
)

const (
	warnShare  = 0.8 // of the threshold: the meter and a line warn
	clearShare = 0.7 // of the threshold: a new approach starts
)

// limit is the size to compare the context with: the one at which the policy reduces it,
// or the window.
func limit(m chat.Meter) int {
	if m.Threshold > 0 {
		return m.Threshold
	}
	return m.Window
}

// share is how much of the limit is used.
func share(m chat.Meter) float64 {
	if l := limit(m); l > 0 {
		return float64(m.Size) / float64(l)
	}
	return 0
}

// tokens is a number of tokens in few characters: 950, 12k, 1.2M.
func tokens(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 999_500:
		return strconv.Itoa((n+500)/1000) + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// kindColors are the colors of the meter's parts, in their order.
var kindColors = []lipgloss.Style{
	lipgloss.NewStyle().Foreground(lipgloss.Blue), lipgloss.NewStyle().Foreground(lipgloss.Magenta),
	lipgloss.NewStyle().Foreground(lipgloss.Cyan), lipgloss.NewStyle().Foreground(lipgloss.Green),
	lipgloss.NewStyle().Foreground(lipgloss.White),
}

// meterBar draws how full the window is in width columns, with a color for each kind.
func meterBar(m chat.Meter, width int, sg *signs) string {
	if m.Window <= 0 || width <= 0 {
		return ""
	}
	filled := min(width, (m.Size*width+m.Window/2)/m.Window)
	if m.Size > 0 {
		filled = max(filled, 1)
	}
	sum := 0
	for _, k := range m.Kinds {
		sum += max(k.Tokens, 0)
	}
	var b strings.Builder
	done, seen := 0, 0
	for i, k := range m.Kinds {
		if sum == 0 {
			break
		}
		seen += max(k.Tokens, 0)
		to := int(float64(seen) / float64(sum) * float64(filled))
		if to > done {
			b.WriteString(kindColors[i%len(kindColors)].Render(strings.Repeat(sg.full, to-done)))
			done = to
		}
	}
	if done < filled {
		b.WriteString(strings.Repeat(sg.full, filled-done))
	}
	if filled < width {
		b.WriteString(dim.Render(strings.Repeat(sg.free, width-filled)))
	}
	return b.String()
}

// meterText is the meter in words: "42% of 200k".
func meterText(m chat.Meter) string {
	text := tokens(m.Size) + " tokens"
	if m.Window > 0 {
		text = fmt.Sprintf("%d%% of %s", int(float64(m.Size)*100/float64(m.Window)+0.5), tokens(m.Window))
	}
	switch s := share(m); {
	case s >= 1:
		return red.Render(text)
	case s >= warnShare:
		return yellow.Render(text)
	}
	return text
}

// meterKinds lists the largest kinds: "results 61%, text 20%".
func meterKinds(m chat.Meter) string {
	sum := 0
	for _, k := range m.Kinds {
		sum += max(k.Tokens, 0)
	}
	if sum == 0 {
		return ""
	}
	var parts []string
	for i, k := range m.Kinds {
		parts = append(parts, kindColors[i%len(kindColors)].Render(label(k.Name))+fmt.Sprintf(" %d%%", int(float64(max(k.Tokens, 0))*100/float64(sum)+0.5)))
	}
	return strings.Join(parts, " ")
}

// statusLine is the last line of the frame. If it is too long, it has no session and
// fewer parts of the meter.
func statusLine(info chat.Info, m *chat.Meter, now time.Time, width int, sg *signs) string {
	sep := dim.Render(" " + sg.dot + " ")
	session := string(info.Session)
	if len(session) > 8 {
		session = headOf(session, 8)
	}
	model := label(info.Model)
	if width < 60 {
		model = cut(model, 16, sg.more)
	}
	parts := []string{model}
	if session != "" {
		parts = append(parts, dim.Render(label(session)))
	}
	fixed := len(parts)
	if m != nil {
		text := meterText(*m)
		share := 6 // of the width
		if m.Next != nil && width < 100 {
			share = 10
		}
		if bar := meterBar(*m, min(20, width/share), sg); bar != "" && width >= 40 {
			text = bar + " " + text
		}
		parts = append(parts, text)
	}
	if info.Simulated {
		parts = append(parts, yellow.Render("simulated"))
	}
	fits := func(more ...string) bool {
		return ansi.StringWidth(strings.Join(append(parts[:len(parts):len(parts)], more...), sep)) <= width
	}
	if fixed == 2 && !fits() {
		parts = slices.Delete(parts, 1, 2) // the session
	}
	if m != nil {
		if m.Next != nil {
			for _, text := range m.Next(now) {
				if text = label(strings.ReplaceAll(text, "·", sg.dot)); fits(text) {
					parts = append(parts, text)
					break
				}
			}
		}
		var more []string
		if kinds := meterKinds(*m); kinds != "" {
			more = append(more, kinds)
		}
		if m.Hidden > 0 {
			more = append(more, dim.Render(numbers.Thousands(m.Hidden)+" hidden"))
		}
		for _, text := range more {
			if fits(text) {
				parts = append(parts, text)
			}
		}
	}
	return cut(strings.Join(parts, sep), width, sg.more)
}
