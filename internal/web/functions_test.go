package web

import (
	"testing"

	"github.com/furlhq/furl"
)

// Amounts and prompts are said without zeros that say nothing.
func TestMoneyWords(t *testing.T) {
	for x, want := range map[float64]string{0: "$0.00", 0.0049: "<$0.01", 0.005: "$0.01", 1234.5: "$1,234.50", -2: "−$2.00", -0.004: "$0.00"} {
		if got := cents(x); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
	for want, u := range map[string]furl.Usage{
		"":                                     {},
		"none from the cache, 12,276 fresh":    {Input: 12_276},
		"none from the cache, 9 written to it": {CacheWrite: 4, CacheWrite1h: 5},
		"16,679 read from the cache, 113,416 written to it, 10 fresh": {CacheRead: 16_679, CacheWrite: 113_416, Input: 10},
	} {
		if got := promptWords(u); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1040: "1.0k", 12_345: "12k", 1_500_000: "1.5M", 7_730_500_000: "7.7B", -2_000_000: "-2.0M"} {
		if got := short(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{0: "0%", 0.0006: "<1%", 1: "1.0%", 2.17: "2.2%", 27.68: "28%", 172.8: "173%"} {
		if got := percent(x); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}
