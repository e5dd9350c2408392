package numbers

import "testing"

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1000: "-1,000", -999: "-999", -123456: "-123,456"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 messages", 1: "1 message", 2: "2 messages", 1204: "1,204 messages"} {
		if got := Count(n, "message"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		is, was float64
		want    string
	}{{25, 100, " (75% less)"}, {150, 100, " (50% more)"}, {100.4, 100, ""}, {1, 0, ""}} {
		if got := Change(c.is, c.was); got != c.want {
			t.Errorf("Change(%v, %v) = %q, want %q", c.is, c.was, got, c.want)
		}
	}
}
