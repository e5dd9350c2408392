package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/replay"
)

// Measures of the picture of cost against what is kept, in pixels. Labels are
// laid out for a picture as narrow as on a phone; in a wider one they only
// move apart.
const (
	scatterHeight = 300
	scatterNarrow = 310
	letterWidth   = 6.3
	labelHeight   = 14
	dotRadius     = 6
)

// scatter is what policies cost against what they keep.
type scatter struct {
	Title, YLabel, Empty string
	Height               int
	X, Y                 []tick
	Even                 string // where cost equals that of sending everything
	Dots                 []dot
	Front                string // points of the line of those nothing beats
	Summary              string

	steps []box // what the line of Front takes up
}

// dot is one policy.
type dot struct {
	Key      key
	Best     bool
	X        string
	Y        int
	Title    string
	DX, DY   int
	Anchor   string
	LineX    int // leader, from the dot; 0 for none
	LineY    int
	cost     float64
	kept     float64
	px       float64
	onFront  bool
	Dominant bool
}

// newScatter draws the policies by cost and by the share that kept gives.
func newScatter(title, yLabel string, results []replay.Result, keys map[string]key, best string, kept func(*replay.Result) (int, int)) *scatter {
	s := &scatter{Title: title, YLabel: yLabel, Height: scatterHeight}
	x, y := scale{1, 1}, scale{1, 1}
	for i := range results {
		r := &results[i]
		part, whole := kept(r)
		share, ok := fraction(part, whole)
		if !ok || !comparable(r) {
			continue
		}
		d := dot{Key: keys[r.Policy], Best: r.Policy == best, cost: *r.CostRatio, kept: share}
		d.Title = fmt.Sprintf("%s: cost %s of sending everything, %s kept (%s of %s)", d.Key.Name, ratio(r.CostRatio), shareOf(part, whole), count(part), count(whole))
		x.lo, x.hi = min(x.lo, d.cost), max(x.hi, d.cost)
		y.lo = min(y.lo, share)
		s.Dots = append(s.Dots, d)
	}
	if len(s.Dots) == 0 {
		s.Empty = "Nothing to compare in these recordings."
		return s
	}
	pad := max(0.04, (x.hi-x.lo)*0.08)
	x = scale{max(0, x.lo-pad), x.hi + pad}
	y = scale{max(0, y.lo-max(0.02, (1-y.lo)*0.12)), 1}
	s.axes(x, y)
	s.place(x, y)
	s.front(x, y)
	s.label()
	s.summarise()
	return s
}

func shareOf(part, whole int) string { return share(part, whole) }

func (s *scatter) axes(x, y scale) {
	for _, v := range x.ticks(7) {
		s.X = append(s.X, tick{At: percent(x.at(v)), Label: trimmed(v, 2)})
	}
	for _, v := range y.ticks(5) {
		s.Y = append(s.Y, tick{Y: scatterDown(y, v), Label: trimmed(100*v, 1) + "%"})
	}
	s.Even = percent(x.at(1))
}

func scatterDown(y scale, v float64) int {
	return scatterHeight - int(y.at(v)*scatterHeight+0.5)
}

func (s *scatter) place(x, y scale) {
	for i := range s.Dots {
		d := &s.Dots[i]
		d.X, d.Y, d.px = percent(x.at(d.cost)), scatterDown(y, d.kept), x.at(d.cost)*scatterNarrow
	}
}

// front draws the line of the policies of which none is both cheaper and
// keeps more.
func (s *scatter) front(x, y scale) {
	order := make([]int, len(s.Dots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		da, db := &s.Dots[a], &s.Dots[b]
		switch {
		case da.cost < db.cost || da.cost == db.cost && da.kept > db.kept:
			return -1
		case da.cost == db.cost && da.kept == db.kept:
			return 0
		}
		return 1
	})
	most := -1.0
	var points []string
	last := ""
	var before *dot
	for _, i := range order {
		d := &s.Dots[i]
		if d.kept <= most {
			continue
		}
		// A step: between two policies one can have what the dearer keeps
		// only at its price.
		at := trimmed(plotWidth*x.at(d.cost), 1)
		if before != nil {
			points = append(points, at+","+last)
			s.steps = append(s.steps,
				box{before.px, float64(before.Y) - 1, d.px, float64(before.Y) + 1},
				box{d.px - 1, float64(d.Y), d.px + 1, float64(before.Y)})
		}
		before = d
		last = fmt.Sprint(d.Y)
		points = append(points, at+","+last)
		most, d.onFront, d.Dominant = d.kept, true, true
	}
	s.Front = strings.Join(points, " ")
}

// box is what a label or a dot takes up.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) overlaps(o box) bool {
	return b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1
}

// label finds a place for each name, in the order from the top left, where it
// covers neither dots nor other names.
func (s *scatter) label() {
	var taken []box
	for i := range s.Dots {
		d := &s.Dots[i]
		taken = append(taken, box{d.px - dotRadius, float64(d.Y) - dotRadius, d.px + dotRadius, float64(d.Y) + dotRadius})
	}
	order := make([]int, len(s.Dots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		da, db := &s.Dots[a], &s.Dots[b]
		if da.Best != db.Best { // the one that matters chooses first
			if da.Best {
				return -1
			}
			return 1
		}
		return da.Y - db.Y
	})
	for _, i := range order {
		d := &s.Dots[i]
		width := d.width()
		bestAt, bestCost := spot{dx: dotRadius + 4, anchor: "start"}, 1e9
		for _, p := range spots {
			if d.Best && p.dy == 0 { // clear of its ring
				p.dx += 4 * p.dx / (dotRadius + 4)
			}
			b := p.box(d, width)
			cost := p.cost
			if b.x0 < -6 || b.x1 > scatterNarrow+14 || b.y0 < -16 || b.y1 > scatterHeight+4 {
				cost += 50
			}
			for _, f := range s.steps {
				if b.overlaps(f) {
					cost += 3
				}
			}
			for j, t := range taken {
				if j != i && b.overlaps(t) {
					cost += 100
				}
			}
			if cost < bestCost {
				bestAt, bestCost = p, cost
			}
		}
		d.DX, d.DY, d.Anchor = bestAt.dx, bestAt.dy+4, bestAt.anchor
		if bestAt.far() {
			d.LineX, d.LineY = bestAt.dx, bestAt.dy
		}
		taken = append(taken, bestAt.box(d, width))
	}
}

// width is about how wide the dot's name is.
func (d *dot) width() float64 {
	w := letterWidth * float64(utf8.RuneCountInString(d.Key.Name))
	if d.Best { // in bold
		w *= 1.2
	}
	return w
}

// spot is where a label may stand, from its dot.
type spot struct {
	dx, dy int
	anchor string
	cost   float64
}

func (p spot) far() bool { return p.anchor != "middle" && p.dy != 0 }

func (p spot) box(d *dot, width float64) box {
	x, y := d.px+float64(p.dx), float64(d.Y+p.dy)
	switch p.anchor {
	case "end":
		x -= width
	case "middle":
		x -= width / 2
	}
	return box{x - 1, y - labelHeight/2, x + width + 1, y + labelHeight/2}
}

// spots are tried in turn: beside the dot, below and above it, and farther off.
var spots = func() []spot {
	out := []spot{{0, dotRadius + 10, "middle", 1}, {0, -dotRadius - 10, "middle", 1.2}}
	for step := range 14 {
		for _, dir := range []int{1, -1} {
			if step == 0 && dir < 0 {
				continue
			}
			dy, cost := dir*step*labelHeight, float64(2*step)
			side := dotRadius + 4
			if step > 0 {
				side = 14
			}
			out = append(out,
				spot{side, dy, "start", cost},
				spot{-side, dy, "end", cost + 0.5})
		}
	}
	return out
}()

func (s *scatter) summarise() {
	var b strings.Builder
	for i := range s.Dots {
		b.WriteString(s.Dots[i].Title + ". ")
	}
	s.Summary = strings.TrimSpace(b.String())
}
