package look

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The style sheet can be in a page's style element, and loads nothing.
func TestStyleCanBeEmbedded(t *testing.T) {
	for _, s := range []string{"</", "<!--", "url(", "@import"} {
		if strings.Contains(strings.ToLower(Style), s) {
			t.Errorf("the style sheet contains %q", s)
		}
	}
}

// Texts have a contrast of at least 4.5 to 1 with every ground, other signs 3 to 1, in both
// themes.
func TestContrast(t *testing.T) {
	light, rest, ok := strings.Cut(Style, "@media screen and (prefers-color-scheme: dark)")
	dark, _, found := strings.Cut(rest, "@media")
	if !ok || !found {
		t.Fatal("the style sheet does not have two themes")
	}
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		colors := make(map[string]float64)
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{3,6});`).FindAllStringSubmatch(text, -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for _, ground := range []string{"bg", "card"} {
			for _, ink := range []string{"ink", "soft", "accent", "warn"} {
				expectContrast(t, theme, colors, ink, ground, 4.5)
			}
			for _, sign := range []string{"system", "tools", "user", "assistant", "call", "thinking", "result", "summary"} {
				expectContrast(t, theme, colors, sign, ground, 2.9)
			}
		}
		expectContrast(t, theme, colors, "accent", "accent-bg", 4.5)
		expectContrast(t, theme, colors, "warn", "warn-bg", 4.5)
	}
}

func expectContrast(t *testing.T, theme string, colors map[string]float64, a, b string, least float64) {
	t.Helper()
	x, okX := colors[a]
	y, okY := colors[b]
	if !okX || !okY {
		t.Errorf("%s: color %s or %s is not defined", theme, a, b)
		return
	}
	if got := (max(x, y) + .05) / (min(x, y) + .05); got < least {
		t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", theme, a, b, got, least)
	}
}

// luminance is the relative luminance of a color, as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	channel := func(v uint64) float64 {
		c := float64(v&255) / 255
		if c <= .04045 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*channel(n>>16) + .7152*channel(n>>8) + .0722*channel(n)
}
