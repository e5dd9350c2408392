package cmdline

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

// Undated returns the name of a model without the date at its end.
func Undated(model string) string {
	if n := len(model) - len("-20060102"); n > 0 && model[n] == '-' && strings.Trim(model[n+1:], "0123456789") == "" {
		return model[:n]
	}
	return model
}

// ListPrice formats what was saved in dollars, "" if no price is known.
func ListPrice(s storage.Savings, saved float64) string {
	switch {
	case s.CostWithout <= 0:
		return ""
	case saved <= -0.005:
		return "-" + numbers.Money(-saved)
	}
	return numbers.Money(max(0, saved))
}

// PercentOf returns a part in percent, "" of nothing.
func PercentOf(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}
