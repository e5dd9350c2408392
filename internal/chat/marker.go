package chat

import (
	"fmt"
	"strconv"

	"github.com/furlhq/furl/event"
)

// MarkerText describes what happened to the context in one line, "" for events that need
// none, such as the usage of the window (C8).
func MarkerText(e event.Event) string {
	switch e := e.(type) {
	case event.Compacted:
		return fmt.Sprintf("Context Compacted #%d — %s archived", e.Number, count(e.MessagesArchived, "message"))
	case event.Rolled:
		return fmt.Sprintf("Old messages hidden — %s, ~%s tokens freed", count(e.MessagesEvicted, "message"), Thousands(e.TokensEvicted))
	case event.Truncated:
		return fmt.Sprintf("Old messages hidden — %s", count(e.MessagesRemoved, "message"))
	case event.Masked:
		text := fmt.Sprintf("Old results hidden — %s replaced by placeholders", count(e.Count, "block"))
		if e.TokensFreed > 0 {
			text += fmt.Sprintf(", ~%s tokens freed", Thousands(e.TokensFreed))
		}
		return text
	case event.Restored:
		return fmt.Sprintf("Restored — %s tokens visible again", Thousands(e.Tokens))
	case event.OverflowRecovered:
		return "The provider refused the prompt as too long; it was shortened and sent again"
	case event.Warning:
		return e.Text
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands returns a number with commas between thousands.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
