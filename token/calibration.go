package token

import (
	"math"

	"github.com/furlhq/furl"
)

// Calibration converts counted tokens into a provider's tokens. It is fitted
// to the usage that the provider reported in one session with one model:
//
//	reported ≈ Overhead + Scale × counted + PerItem × calls and results
//
// Scale and PerItem are fitted to the growth of prompts from one report to
// the next, which unrecorded content does not affect. Overhead is fitted to
// the newest reports as a whole: it is the system prompt, the tools, and
// whatever else a client sends without recording it. Outliers have little
// influence, because clients change what they send without notice.
// docs/internals/sizes.md has the measurements and the alternatives that were tried.
//
// A Calibration is a value: copies are independent. The zero value is the
// calibration of an unknown model; see Prior. Each report takes constant time
// and memory, and the same reports in the same order give the same fit.
type Calibration struct {
	scale, perItem float64    // scale 0: not started
	cov            [3]float64 // variance of scale, covariance, variance of perItem
	overheads      [3]float64 // the newest, while the prompt only grew
	grown          int        // number of them
	first, newest  level      // since the prompt last shrank
	reports        int
}

// level is a report about a whole prompt: how much of it was counted, and how
// much was not.
type level struct{ counted, overhead float64 }

// The estimate for a model before its first report, and its standard
// deviations.
const (
	priorItem      = 12.0
	scaleDeviation = 0.2
	itemDeviation  = 20.0
)

// The noise of a report: a few tokens, plus a share of what was added. A
// report is an outlier if it deviates by more than twice what noise and
// uncertainty explain; its weight is then the inverse cube of the deviation.
const (
	noiseTokens = 30.0
	noiseShare  = 0.1
	offAt       = 2.0
	// An estimate that is too low costs a refused request, one that is too
	// high wastes some room.
	lowIsWorse = 0.8
)

// Bounds of a fit, whatever is reported.
const (
	minScale, maxScale = 0.4, 4.0
	maxPerItem         = 300.0
)

// Prior returns the calibration with which a model starts.
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

// begun returns c, or the calibration that the zero value represents.
func (c *Calibration) begun() *Calibration {
	if c.scale == 0 {
		p := Prior(&furl.Model{})
		c.scale, c.perItem, c.cov = p.scale, p.perItem, p.cov
	}
	return c
}

// Scale returns the provider's tokens per counted token.
func (c Calibration) Scale() float64 { return c.begun().scale }

// PerItem returns what a tool call or result costs in addition to its text,
// in the provider's tokens.
func (c Calibration) PerItem() float64 { return c.begun().perItem }

// Overhead returns what was sent and not counted, in the provider's tokens:
// the median of the three newest reports, so that one unusual request does
// not matter. It is 0 before the first report.
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

// overheadAt returns the overhead of a prompt with the given number of
// counted tokens. If the overhead changed while the prompt grew, the change
// came with the messages added then and disappears with them: clients add
// reminders and clear old results without recording it.
func (c *Calibration) overheadAt(counted float64) float64 {
	now := c.overhead()
	grown := c.newest.counted - c.first.counted
	if grown <= 0 || counted >= c.newest.counted {
		return now
	}
	return c.first.overhead + (now-c.first.overhead)*max(counted-c.first.counted, 0)/grown
}

// Reports returns the number of whole prompts observed.
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

// shrunk is the share of the last counted size below which a prompt has lost
// more than some thinking.
const shrunk = 0.75

// Observe adjusts the fit to the reported size of a whole prompt.
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

// ObserveAdded adjusts the fit to the reported growth of a prompt by the part
// p.
func (c *Calibration) ObserveAdded(p Part, reported int) {
	tokens, items := float64(p.Tokens+p.Thinking), float64(p.Items)
	if tokens < 0 || items < 0 || tokens+items == 0 {
		return
	}
	// A Kalman filter of two constants.
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

// in returns the part of the fit that is still valid for another model: the
// overhead, in that model's tokens.
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
