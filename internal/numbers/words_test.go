package numbers

import (
	"testing"
)

// Numbers have thousands separators, and one thing is singular.
func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 requests", 1: "1 request", 2: "2 requests", 3441: "3,441 requests"} {
		if got := Count(n, "request"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
