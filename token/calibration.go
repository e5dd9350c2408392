package token

import (
	"math"

	"github.com/furlhq/furl"
)

// Calibration turns counted tokens into a provider's own, as fitted to what
// the provider reported in one session with one model:
//
//	reported ≈ Overhead + Scale × counted + PerItem × calls and results
//
// Scale and PerItem are fitted to what prompts grew by from one report to the
// next, where nothing unrecorded is in the way, and Overhead — the system
// prompt, the tools, and whatever else a client sends and does not record —
// to the newest reports as a whole. Single reports that do not fit hardly
// count, since clients change what they send without saying so. docs/sizes.md
// has the measurements and what else was tried.
//
// A Calibration is a value: copies are independent. Its zero value is that of
// an unknown model; see Prior. It takes constant time and memory per report,
// and the same reports in the same order give the same fit.
type Calibration struct {
	scale, perItem float64    // scale 0: not begun
	cov            [3]float64 // variance of scale, covariance, variance of perItem
	overheads      [3]float64 // the newest, while the prompt only grew
	grown          int        // how many there are
	first, newest  level      // since the prompt last shrank
	reports        int
}

// level is what a report said of a prompt as a whole: how much of it was
// counted, and how much was not.
type level struct{ counted, overhead float64 }

// What is known of a model before it reported anything, and how far off that
// may be.
const (
	priorItem      = 12.0
	scaleDeviation = 0.2
	itemDeviation  = 20.0
)

// The noise of a report: a few tokens always, and a share of what was added.
// A report is off when it is further off than noise and doubt explain twice;
// then it counts by the inverse cube of how far.
const (
	noiseTokens = 30.0
	noiseShare  = 0.1
	offAt       = 2.0
	// An estimate too low costs a refused request, one too high some room.
	lowIsWorse = 0.8
)

// Bounds on what a fit may come to believe, whatever is reported.
const (
	minScale, maxScale = 0.4, 4.0
	maxPerItem         = 300.0
)

// Prior returns the calibration to start from with a model.
func Prior(m *furl.Model) Calibration {
	c := Calibration{
		scale:   1,
		perItem: priorItem,
		cov:     [3]float64{scaleDeviation * scaleDeviation, 0, itemDeviation * itemDeviation},
	}
	if m.TokenScale > 0 {
		c.scale = clamp(m.TokenScale, minScale, maxScale)
	}
	if m.ItemTokens > 0 {
		c.perItem = clamp(m.ItemTokens, 0, maxPerItem)
	}
	return c
}

// begun returns c, or what the zero value stands for.
func (c *Calibration) begun() *Calibration {
	if c.scale == 0 {
		p := Prior(&furl.Model{})
		c.scale, c.perItem, c.cov = p.scale, p.perItem, p.cov
	}
	return c
}

// Scale is how many of the provider's tokens one counted token is worth.
func (c Calibration) Scale() float64 { return c.begun().scale }

// PerItem is what a tool call or result costs beyond its words, in the
// provider's tokens.
func (c Calibration) PerItem() float64 { return c.begun().perItem }

// Overhead is what was sent and not counted, in the provider's tokens: the
// middle one of the three newest reports', so that one odd request does not
// matter. It is 0 before anything was reported.
func (c Calibration) Overhead() int { return round(c.overhead()) }

func (c *Calibration) overhead() float64 {
	a, b, d := c.overheads[0], c.overheads[1], c.overheads[2]
	switch c.grown {
	case 0:
		return 0
	case 1:
		return a
	case 2:
		return (a + b) / 2
	}
	return max(min(a, b), min(max(a, b), d))
}

// overheadAt is the overhead of a prompt of which so much is counted. What
// the overhead has changed by while the prompt grew came with what was added
// then, unrecorded, and goes with it: clients add reminders, and clear old
// results without a word.
func (c *Calibration) overheadAt(counted float64) float64 {
	now := c.overhead()
	grown := c.newest.counted - c.first.counted
	if grown <= 0 || counted >= c.newest.counted {
		return now
	}
	return c.first.overhead + (now-c.first.overhead)*max(counted-c.first.counted, 0)/grown
}

// Reports is how many whole prompts were observed.
func (c Calibration) Reports() int { return c.reports }

// Added estimates a part of a prompt, in the provider's tokens.
func (c Calibration) Added(p Part) int { return round(c.begun().added(p)) }

func (c *Calibration) added(p Part) float64 {
	return c.scale*float64(p.Tokens+p.Thinking) + c.perItem*float64(p.Items) + float64(p.Reasoning)
}

// Estimate estimates a whole prompt, in the provider's tokens.
func (c Calibration) Estimate(p Part) int {
	counted := c.begun().added(p)
	return max(round(c.overheadAt(counted)+counted), 0)
}

// shrunk is the share of what was counted last below which a prompt has not
// just lost some thinking.
const shrunk = 0.75

// Observe learns from the reported size of a whole prompt.
func (c *Calibration) Observe(p Part, reported int) {
	if reported <= 0 {
		return
	}
	counted := c.begun().added(p)
	at := level{counted, float64(reported) - counted}
	if counted < shrunk*c.newest.counted || c.reports == 0 {
		c.first, c.grown = at, 0
	}
	c.newest = at
	c.overheads[2], c.overheads[1], c.overheads[0] = c.overheads[1], c.overheads[0], at.overhead
	c.grown++
	c.reports++
}

// ObserveAdded learns from what a prompt grew by for that part, which was
// added and of which nothing is known otherwise.
func (c *Calibration) ObserveAdded(p Part, reported int) {
	tokens, items := float64(p.Tokens+p.Thinking), float64(p.Items)
	if tokens < 0 || items < 0 || tokens+items == 0 {
		return
	}
	// A Kalman filter of two numbers that do not move.
	ks := c.begun().cov[0]*tokens + c.cov[1]*items
	ki := c.cov[1]*tokens + c.cov[2]*items
	doubt := tokens*ks + items*ki
	miss := float64(reported) - c.added(p)
	noise := noiseTokens + noiseShare*math.Abs(float64(reported))
	if miss > 0 {
		noise *= lowIsWorse
	}
	total := doubt + noise*noise
	if off := math.Abs(miss) / math.Sqrt(total); off > offAt {
		total = doubt + noise*noise*math.Pow(off/offAt, 3)
	}
	c.scale = clamp(c.scale+ks/total*miss, minScale, maxScale)
	c.perItem = clamp(c.perItem+ki/total*miss, 0, maxPerItem)
	c.cov[0] = max(c.cov[0]-ks*ks/total, 0)
	c.cov[1] -= ks * ki / total
	c.cov[2] = max(c.cov[2]-ki*ki/total, 0)
}

// in gives what is left of the fit with another model: the overhead, in that
// model's tokens.
func (c Calibration) in(m *furl.Model) Calibration {
	next := Prior(m)
	ratio := next.scale / c.begun().scale
	next.grown, next.reports = c.grown, c.reports
	for i, o := range c.overheads {
		next.overheads[i] = o * ratio
	}
	next.first = level{c.first.counted * ratio, c.first.overhead * ratio}
	next.newest = level{c.newest.counted * ratio, c.newest.overhead * ratio}
	return next
}

func clamp(x, low, high float64) float64 { return max(low, min(x, high)) }

func round(x float64) int { return int(math.Round(x)) }
