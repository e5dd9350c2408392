package operation

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// SavedWords says in a line what was saved, compared with an agent that compacts and one
// that keeps its prompts at its window. Subscriptions do not pay list prices, so tokens are
// first.
func SavedWords(s storage.Savings) string {
	sent := s.TokensSent()
	text := numbers.Thousands(sent) + " tokens sent, none saved"
	if least, most := min(s.TokensWithout, s.TokensWithout+s.TokensSpread), max(s.TokensWithout, s.TokensWithout+s.TokensSpread); sent != least || sent != most {
		text = fmt.Sprintf("%s tokens sent instead of %s", numbers.Thousands(sent), between(numbers.Thousands(least), numbers.Thousands(most), float64(sent), float64(least), float64(most)))
	}
	if s.CostWithout <= 0 {
		return text
	}
	cost := s.Spent()
	least, most := min(s.CostWithout, s.CostWithout+s.CostSpread), max(s.CostWithout, s.CostWithout+s.CostSpread)
	text += "; list price " + numbers.Money(cost)
	if low, high := numbers.Money(least), numbers.Money(most); low != numbers.Money(cost) || high != low {
		text += " instead of " + between(low, high, cost, least, most)
	}
	return text
}

// between returns what an amount is compared with, and by how much it differs from that.
func between(low, high string, is, least, most float64) string {
	if low == high {
		return low + numbers.Change(is, least)
	}
	return low + " to " + high + changes(is, least, most)
}

// changes compares an amount with two others, as in " (30% to 45% less)".
func changes(is, least, most float64) string {
	a, b := numbers.Change(is, least), numbers.Change(is, most)
	switch {
	case a == b || b == "":
		return a
	case a == "":
		return b
	}
	a, b = strings.TrimSuffix(a, ")"), strings.TrimPrefix(b, " (")
	if unit := a[strings.LastIndex(a, " "):]; strings.HasSuffix(b, unit+")") {
		a = strings.TrimSuffix(a, unit)
	}
	return a + " to " + b
}

// OverWords says what requests that would not have fit the window are compared with, "" if
// there are none.
func OverWords(s storage.Savings) string {
	if s.OverWindow == 0 {
		return ""
	}
	return fmt.Sprintf("With everything in their prompts, %s would not have fit the context window. An agent without furl is assumed to compact, or to keep its prompts at the window.", numbers.Count(s.OverWindow, "request"))
}
