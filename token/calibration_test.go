package token_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// truth is a provider's way of counting, which a calibration must find.
type truth struct {
	overhead       int
	scale, perItem float64
}

func (r truth) size(p token.Part) int {
	return r.overhead + int(r.scale*float64(p.Tokens+p.Thinking)+r.perItem*float64(p.Items)+0.5)
}

// grow adds one step to a prompt.
func grow(r *rand.Rand) token.Part {
	return token.Part{Tokens: 50 + r.IntN(3000), Thinking: r.IntN(200), Items: 1 + r.IntN(3)}
}

func TestCalibrationFindsTheTruth(t *testing.T) {
	for name, real := range map[string]truth{
		"a Claude under Claude Code": {42_000, 1.16, 40},
		"a GPT":                      {9_000, 1.0, 12},
		"a far-off tokenizer":        {1_000, 1.6, 30},
		"a sparing one":              {500, 0.8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			var c token.Calibration
			var whole token.Part
			for range 60 {
				p := grow(r)
				whole = whole.Plus(p)
				c.ObserveAdded(p, real.size(p)-real.overhead)
				c.Observe(whole, real.size(whole))
			}
			if got := c.Scale(); math.Abs(got/real.scale-1) > 0.02 {
				t.Errorf("scale %.3f, want %.3f", got, real.scale)
			}
			half := token.Part{Tokens: whole.Tokens / 2, Thinking: whole.Thinking / 2, Items: whole.Items / 2}
			if got, want := c.Estimate(half), real.size(half); math.Abs(float64(got-want)) > 0.02*float64(want) {
				t.Errorf("half of the prompt: estimated %d tokens, want %d", got, want)
			}
		})
	}
}

// Outliers have little influence: a changed system prompt, a compaction by
// the client, the usage of another conversation.
func TestCalibrationIgnoresOddReports(t *testing.T) {
	real := truth{20_000, 1.15, 35}
	run := func(odd bool) token.Calibration {
		r := rand.New(rand.NewPCG(2, 2))
		c := token.Prior(&furl.Model{ItemTokens: 35, TokenScale: 1.2})
		var whole token.Part
		for i := range 100 {
			p := grow(r)
			whole = whole.Plus(p)
			added, size := real.size(p)-real.overhead, real.size(whole)
			if odd && i%10 == 7 {
				added, size = added-9000, 300
			}
			c.ObserveAdded(p, added)
			c.Observe(whole, size)
		}
		return c
	}
	calm, odd := run(false), run(true)
	if a, b := calm.Scale(), odd.Scale(); math.Abs(a/b-1) > 0.02 {
		t.Errorf("scale %.3f with odd reports, %.3f without", b, a)
	}
	if a, b := calm.Overhead(), odd.Overhead(); math.Abs(float64(a-b)) > 2000 {
		t.Errorf("overhead %d with odd reports, %d without", b, a)
	}
}

// A fit stays within its bounds for any reports.
func TestCalibrationStaysSane(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var c token.Calibration
	for range 10_000 {
		p := token.Part{Tokens: r.IntN(1<<30) - 1<<10, Items: r.IntN(1 << 20)}
		c.ObserveAdded(p, r.IntN(1<<31)-1<<30)
		c.Observe(p, r.IntN(1<<31)-1<<30)
		if s := c.Scale(); !(s >= 0.4 && s <= 4) {
			t.Fatalf("scale %v", s)
		}
		if e := c.PerItem(); !(e >= 0 && e <= 300) {
			t.Fatalf("per item %v", e)
		}
		if got := c.Estimate(token.Part{Tokens: 1000}); got < 0 {
			t.Fatalf("estimated %d tokens", got)
		}
	}
}

// The same reports in the same order give the same fit, and copies are
// independent.
func TestCalibrationIsAValue(t *testing.T) {
	var a token.Calibration
	a.Observe(token.Part{Tokens: 1000}, 5000)
	b := a
	b.ObserveAdded(token.Part{Tokens: 1000}, 1500)
	b.Observe(token.Part{Tokens: 2000}, 6500)
	if a == b || a.Reports() != 1 {
		t.Error("a copy shares its state")
	}
	a.ObserveAdded(token.Part{Tokens: 1000}, 1500)
	a.Observe(token.Part{Tokens: 2000}, 6500)
	if a != b {
		t.Error("the same reports gave different fits")
	}
}

func TestPrior(t *testing.T) {
	claude := token.Prior(&furl.Model{ItemTokens: 35, TokenScale: 1.15})
	gpt := token.Prior(&furl.Model{})
	var unknown token.Calibration
	if claude.Scale() != 1.15 || gpt.Scale() != 1 || unknown.Scale() != 1 {
		t.Errorf("scales %v, %v, %v; want 1.15, 1, 1", claude.Scale(), gpt.Scale(), unknown.Scale())
	}
	if claude.PerItem() <= gpt.PerItem() || gpt.PerItem() != unknown.PerItem() {
		t.Errorf("per item %v, %v, %v; want the most for Claude, the same for the others", claude.PerItem(), gpt.PerItem(), unknown.PerItem())
	}
	if got := unknown.Estimate(token.Part{Tokens: 500, Thinking: 100}); got != 600 {
		t.Errorf("estimated %d tokens, want the counted 600", got)
	}
}
