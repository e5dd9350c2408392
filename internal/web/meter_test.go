package web

import "testing"

// Only what happened is said: a prompt that was sent was not above the window.
func TestSizeWarning(t *testing.T) {
	for _, tt := range []struct {
		size, trigger, window int
		now                   bool
		want                  string
	}{
		{80_000, 100_000, 200_000, true, ""},
		{95_000, 100_000, 200_000, true, "close to 100,000, where furl reduces"},
		{250_000, 100_000, 200_000, false, "above 100,000, where furl reduces"},
		{190_000, 0, 200_000, true, "close to the limit"},
		{210_000, 0, 200_000, true, "the provider may refuse the next request"},
		{210_000, 0, 200_000, false, ""},
		{210_000, 0, 0, true, ""},
	} {
		if got := sizeWarning(tt.size, tt.trigger, tt.window, tt.now); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
