package keepalive_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/price"
)

// Entries of one hour pay if a pause costs more than their higher price.
func TestHourPays(t *testing.T) {
	automatic := marks(0.1, 1.25)
	automatic.Caching.Explicit = false
	unpriced := marks(0.1, 1.25)
	unpriced.Prices.CacheWrite1h = 0
	for _, tt := range []struct {
		name  string
		model furl.Model
		want  bool
	}{
		{"Anthropic's prices", marks(0.1, 1.25), true},
		{"reads at 0.4 of the input price", marks(0.4, 1.25), true},
		{"reads and writes cost nearly the same", marks(0.6, 1.25), false},
		{"all entries live an hour", price.WithLifetime(marks(0.1, 1.25), time.Hour), false},
		{"an automatic cache", automatic, false},
		{"no entries of one hour", unpriced, false},
		{"no cache", furl.Model{Prices: furl.Prices{Input: 3, CacheWrite1h: 6}}, false},
	} {
		if got := keepalive.HourPays(&tt.model); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestIsPause(t *testing.T) {
	m := marks(0.1, 1.25)
	for d, want := range map[time.Duration]bool{
		-time.Hour: false, 5 * time.Minute: false, 5*time.Minute + 1: true, time.Hour: true, time.Hour + 1: false,
	} {
		if keepalive.IsPause(&m, d) != want {
			t.Errorf("%v: %t", d, !want)
		}
	}
	if keepalive.IsPause(new(furl.Model), 10*time.Minute) {
		t.Error("a model without a cache has pauses")
	}
}
