package tui

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/event"
)

// marker describes an event of the context in a line. after is the size of the context
// after a reduction, 0 if it is not known. text is what can be unfolded, such as a
// summary, and warning says that the line asks for attention. The line is "" for events
// that are not shown.
func marker(e event.Event, after int) (line, text string, warning bool) {
	freed := func(before int) string {
		if after <= 0 || after >= before {
			return ""
		}
		return fmt.Sprintf(", ~%s tokens freed", thousands(before-after))
	}
	switch e := e.(type) {
	case event.Compacted:
		line = fmt.Sprintf("Context Compacted #%d — %s archived%s", e.Number, messages(e.MessagesArchived), freed(e.ContextSizeBefore))
		text = "Summary from LLM:\n" + e.Summary
	case event.Truncated:
		line = fmt.Sprintf("Context Truncated — %s archived%s", messages(e.MessagesRemoved), freed(e.PrevContextTokens))
	case event.Rolled:
		line = fmt.Sprintf("Context Rolled — %s archived, ~%s tokens freed", messages(e.MessagesEvicted), thousands(e.TokensEvicted))
	case event.Masked:
		what := "blocks"
		if e.Count == 1 {
			what = "block"
		}
		line = fmt.Sprintf("Context Masked — %s %s shortened", thousands(e.Count), what)
		if e.TokensFreed > 0 {
			line += fmt.Sprintf(", ~%s tokens freed", thousands(e.TokensFreed))
		}
	case event.Restored:
		line = fmt.Sprintf("Context Restored — ~%s tokens visible again", thousands(e.Tokens))
	case event.Rewound:
		line = fmt.Sprintf("Rewound to record %d", e.To)
	case event.OverflowRecovered:
		line, warning = "The provider refused the request as too long. A smaller one was sent.", true
	case event.Warning:
		line, warning = label(e.Text), true
	}
	return line, text, warning
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return thousands(n) + " messages"
}

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
