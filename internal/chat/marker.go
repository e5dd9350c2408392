package chat

import (
	"fmt"

	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/numbers"
)

// Describe describes an event of the context in a line, "" for events that need none.
// after is the size of the context after a reduction, 0 if it is not known. detail is
// what can be shown on request, such as a summary. warning reports that the line asks
// for attention (C8).
func Describe(e event.Event, after int) (line, detail string, warning bool) {
	freed := func(before int) string {
		if after <= 0 || after >= before {
			return ""
		}
		return fmt.Sprintf(", ~%s tokens freed", numbers.Thousands(before-after))
	}
	switch e := e.(type) {
	case event.Compacted:
		did, from := "Compacted", "Summary from LLM:\n"
		if e.Extract {
			did, from = "Extracted", "Extract of the messages:\n"
		}
		line = fmt.Sprintf("Context %s #%d — %s archived%s", did, e.Number, numbers.Count(e.MessagesArchived, "message"), freed(e.ContextSizeBefore))
		detail = from + e.Summary
	case event.Truncated:
		line = fmt.Sprintf("Context Truncated — %s archived%s", numbers.Count(e.MessagesRemoved, "message"), freed(e.PrevContextTokens))
	case event.Rolled:
		line = fmt.Sprintf("Context Rolled — %s archived, ~%s tokens freed", numbers.Count(e.MessagesEvicted, "message"), numbers.Thousands(e.TokensEvicted))
	case event.Masked:
		line = fmt.Sprintf("Context Masked — %s shortened", numbers.Count(e.Count, "block"))
		if e.TokensFreed > 0 {
			line += fmt.Sprintf(", ~%s tokens freed", numbers.Thousands(e.TokensFreed))
		}
	case event.Restored:
		line = fmt.Sprintf("Context Restored — ~%s tokens visible again", numbers.Thousands(e.Tokens))
	case event.EditRepaired:
		line = fmt.Sprintf("An edit failed — the model sees the text of %s again, ~%s tokens", e.Files, numbers.Thousands(e.Tokens))
	case event.Rewound:
		line = fmt.Sprintf("Rewound to record %d", e.To)
	case event.OverflowRecovered:
		line, warning = "The provider refused the request as too long. A smaller one was sent.", true
	case event.ThinkingRecovered:
		line, warning = "The provider refused the reasoning of earlier replies. The request was sent without it.", true
	case event.Warning:
		line, warning = e.Text, true
	}
	return line, detail, warning
}
