package account

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// What a request is compared with is never larger than what the provider accepts, and the
// agent that compacts never has more than the one that loses nothing.
func TestAlternativeFitsTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(0, 2_000_000).Draw(t, "window")
		prompt := rapid.IntRange(0, 2_000_000).Draw(t, "prompt")
		hidden := rapid.IntRange(0, 20_000_000).Draw(t, "hidden")
		compacts, most := WithoutSizes(prompt, hidden, window)
		accepted := max(window, prompt)
		switch {
		case hidden == 0 && (compacts != prompt || most != prompt):
			t.Fatalf("nothing is hidden of %d tokens, but without furl there are %d or %d", prompt, compacts, most)
		case window == 0 && (compacts != prompt+hidden || most != prompt+hidden):
			t.Fatalf("without a window %d and %d tokens, want %d", compacts, most, prompt+hidden)
		case window > 0 && (compacts > accepted || most > accepted || compacts > most || compacts < 0):
			t.Fatalf("%d or %d tokens, the provider accepts %d", compacts, most, accepted)
		}
	})
}

// The session grows by 10,000 tokens with each request, and furl keeps its prompts at
// 30,000. An agent without it compacts at 156,000 of 200,000 and pays for a summary.
func TestCompactingAgent(t *testing.T) {
	m := &furl.Model{
		Prices:  furl.Prices{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75},
		Caching: furl.Caching{Explicit: true, Lifetime: 5 * time.Minute},
	}
	var last *furl.Exchange
	var sizes []int
	var costs, most []float64
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for w := 140_000; w <= 190_000; w += 10_000 {
		r := &Sent{
			Model: m, Name: "m", Window: 200_000, At: at.Add(time.Minute), When: at, Last: last, Scale: 1,
			Usage:  furl.Usage{CacheRead: 20_000, CacheWrite: 10_000, Output: 100},
			Hidden: Counted{Tokens: w - 30_000}, Between: SinceLast{Counted: 10_000},
		}
		a := r.Account()
		sizes, costs, most = append(sizes, a.PromptWithout), append(costs, a.Without), append(most, a.WithoutMost)
		if a.PromptMost != w || a.Over {
			t.Errorf("%d tokens with everything, in a window of 200,000: %+v", w, a)
		}
		last = &furl.Exchange{Model: "m", Usage: r.Usage}
	}
	// Written by hand: reads at $0.30, writes at $3.75, output at $15 per million.
	price := func(read, write, output int) float64 {
		return (float64(read)*0.3 + float64(write)*3.75 + float64(output)*15) / 1e6
	}
	want := []int{140_000, 150_000, 56_000, 66_000, 76_000, 86_000}
	for i, w := range []float64{
		price(130_000, 10_000, 100), price(140_000, 10_000, 100),
		price(150_000, 0, 4_000) + price(48_000, 8_000, 100), // the summary, then instructions from the cache
		price(56_000, 10_000, 100), price(66_000, 10_000, 100), price(76_000, 10_000, 100),
	} {
		if sizes[i] != want[i] || math.Abs(costs[i]-w) > 1e-9 {
			t.Errorf("request %d: %d tokens, $%.6f; want %d and $%.6f", i+1, sizes[i], costs[i], want[i], w)
		}
		if kept := price(130_000+10_000*i, 10_000, 100); math.Abs(most[i]-kept) > 1e-9 {
			t.Errorf("request %d: $%.6f without compaction, want $%.6f", i+1, most[i], kept)
		}
	}
}

// No class of a usage becomes negative, whatever is removed.
func TestTakeFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000)
		u := furl.Usage{Input: n.Draw(t, "input"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write"), CacheWrite1h: n.Draw(t, "hour")}
		was, less := u.Prompt(), rapid.IntRange(0, 5000).Draw(t, "less")
		takeFrom(&u, less)
		if min(u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h) < 0 || u.Prompt() != max(0, was-less) {
			t.Fatalf("%d less than %d are %+v", less, was, u)
		}
	})
}
