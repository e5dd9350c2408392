package nextinput

import (
	"math"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
)

// explicit costs $3 a million tokens, $6 in prompts above 200,000 tokens.
var explicit = furl.Model{
	Prices:     furl.Prices{Input: 3, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6, Output: 15},
	LongPrices: furl.Prices{Input: 6, CacheRead: 0.6, CacheWrite: 7.5, CacheWrite1h: 12, Output: 22.5},
	LongAbove:  200_000,
	Caching:    furl.Caching{Explicit: true, MinPrefix: 1024, Lifetime: 5 * time.Minute},
	Billing:    furl.Billing{Speed: map[string]float64{"fast": 6}},
}

// automatic costs $2 a million tokens, $0.20 from the cache.
var automatic = furl.Model{
	Prices:  furl.Prices{Input: 2, CacheRead: 0.2, Output: 8},
	Caching: furl.Caching{MinPrefix: 1024, Granule: 128, Lifetime: 5 * time.Minute, Extended: 24 * time.Hour},
}

var used = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	hour, extended := price.WithLifetime(explicit, time.Hour), price.WithLifetime(automatic, 24*time.Hour)
	tests := []struct {
		name           string
		p              Prompt
		warm, full     float64
		reduced, later float64
		lives          time.Duration // 0: unknown
		after          time.Duration
		want           string
	}{
		{
			// 99,000 × 0.30 + 1,000 × 3.75; 100,000 × 3.75; 21,000 × 3.75 per million.
			"five minutes", Prompt{Model: &explicit, Size: 100_000, Cached: 99_000, Hidden: 79_000},
			0.03345, 0.375, 0.07875, 0, 5 * time.Minute,
			2*time.Minute + 50*time.Second, "cache expires in 2:10 · next input $0.03, after that $0.38, reduced $0.08",
		},
		{
			"expired", Prompt{Model: &explicit, Size: 100_000, Cached: 99_000, Hidden: 79_000},
			0.03345, 0.375, 0.07875, 0, 5 * time.Minute,
			6 * time.Minute, "cache expired · next input $0.38, reduced $0.08",
		},
		{
			// 99,000 × 0.30 + 1,000 × 6; 100,000 × 6.
			"an hour", Prompt{Model: &hour, Size: 100_000, Cached: 99_000},
			0.0357, 0.6, 0, 0, time.Hour,
			0, "cache expires in 1:00:00 · next input $0.04, after that $0.60",
		},
		{
			// Above 200,000 everything costs twice as much, the reduced prompt does not:
			// 290,000 × 0.60 + 10,000 × 7.50; 300,000 × 7.50; 150,000 × 3.75.
			"a long prompt", Prompt{Model: &explicit, Size: 300_000, Cached: 290_000, Hidden: 150_000},
			0.249, 2.25, 0.5625, 0, 5 * time.Minute,
			time.Minute, "cache expires in 4:00 · next input $0.25, after that $2.25, reduced $0.56",
		},
		{
			"fast mode", Prompt{Model: &explicit, Terms: furl.Terms{Speed: "fast"}, Size: 100_000, Cached: 100_000},
			0.18, 2.25, 0, 0, 5 * time.Minute,
			time.Minute, "cache expires in 4:00 · next input $0.18, after that $2.25",
		},
		{
			// Instructions of 20,000 have entries of an hour: 20,000 × 0.30 + 80,000 × 3.75,
			// reduced to 40,000: 20,000 × 0.30 + 20,000 × 3.75, after the hour
			// 20,000 × 6 + 80,000 × 3.75.
			"instructions for an hour", Prompt{Model: &explicit, Size: 100_000, Cached: 100_000, Fixed: 20_000, HourFixed: true, Hidden: 60_000},
			0.03, 0.306, 0.081, 0.42, 5 * time.Minute,
			2 * time.Hour, "cache expired · next input $0.42, reduced $0.20",
		},
		{
			// As five minutes, and reduced with 10,000 of instructions for an hour:
			// 10,000 × 6 + 11,000 × 3.75.
			"the next instructions for an hour", Prompt{Model: &explicit, Size: 100_000, Cached: 99_000, Fixed: 10_000, HourNext: true, Hidden: 79_000},
			0.03345, 0.375, 0.10125, 0, 5 * time.Minute,
			6 * time.Minute, "cache expired · next input $0.38, reduced $0.10",
		},
		{
			// Whole granules of 128: 9,984 × 0.20 + 16 × 2; 10,000 × 2 per million.
			"automatic", Prompt{Model: &automatic, Size: 10_000, Cached: 10_000},
			0.0020288, 0.02, 0, 0, 0,
			time.Minute, "next input under $0.01, without the cache $0.02",
		},
		{
			"automatic, forgotten", Prompt{Model: &automatic, Size: 10_000, Cached: 10_000},
			0.0020288, 0.02, 0, 0, 0,
			2 * time.Hour, "cache expired · next input $0.02",
		},
		{
			"automatic for a day", Prompt{Model: &extended, Size: 128_000, Cached: 128_000},
			0.0256, 0.256, 0, 0, 24 * time.Hour,
			time.Hour, "cache expires in 23:00:00 · next input $0.03, after that $0.26",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.p.Now, tt.p.Used = used, used
			n := Of(&tt.p)
			if n == nil {
				t.Fatal("nothing")
			}
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 1e-9 {
					t.Errorf("%s is $%v, want $%v", what, got, want)
				}
			}
			near("warm", n.Warm, tt.warm)
			near("cold", n.Cold.Full, tt.full)
			near("reduced", n.Cold.Reduced, tt.reduced)
			if n.Later != nil {
				near("after an hour", n.Later.Full, tt.later)
			} else if tt.later != 0 {
				t.Error("nothing for after an hour")
			}
			if tt.lives == 0 != n.Expires.IsZero() || tt.lives != 0 && n.Expires.Sub(used) != tt.lives {
				t.Errorf("it expires at %v", n.Expires)
			}
			if left := Left(n, used.Add(tt.after)); left != max(0, tt.lives-tt.after) {
				t.Errorf("it lives for %v", left)
			}
			if got := Words(n, used.Add(tt.after)); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	if Left(nil, used) != 0 {
		t.Error("an unknown cache lives")
	}
	if n := Of(&Prompt{Model: &furl.Model{Caching: explicit.Caching}, Size: 1000, Now: used, Used: used}); n != nil || Words(n, used) != "" || Explain(n, used) != "" {
		t.Errorf("without a price %+v", n)
	}
}

func TestPingsRenew(t *testing.T) {
	n := Of(&Prompt{Model: &explicit, Size: 100_000, Cached: 99_000, Hidden: 79_000, Now: used, Used: used})
	later := n.UsedAt(used.Add(4 * time.Minute))
	if now := used.Add(6 * time.Minute); !Expired(n, now) || Expired(later, now) || Short(later, now) != "cache 3:00 · next $0.03" || Explain(later, now) != "" {
		t.Errorf("%q", Short(later, now))
	}
	if n.UsedAt(used) != n || (*storage.NextInput)(nil).UsedAt(used) != nil {
		t.Error("an earlier use changes it")
	}
	if now := used.Add(10 * time.Minute); Short(later, now) != "cache expired · next $0.08" {
		t.Errorf("%q", Short(later, now))
	}
}
