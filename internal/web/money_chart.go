package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The size of a chart, in units of its SVG.
const (
	chartWidth  = 720
	chartHeight = 180
	chartTop    = 14 // space for the largest value's label
)

// dayChart is a chart of the costs of each day, with furl and without. If no price is
// known, it is of tokens.
type dayChart struct {
	Dollars bool
	Alone   bool // only what was recorded is drawn
	Largest string
	Bars    []dayBar
	// First and Last are the first and the last day; Unit is what a bar stands for.
	First, Last, Unit string
}

// dayBar is the bar of one day.
type dayBar struct {
	Day, Words              string
	X, Width                string
	WithY, WithHeight       string
	WithoutY, WithoutHeight string
	with, without           float64
}

// maxBars is the number of bars of a chart. Longer periods have a bar for each week or
// month.
const maxBars = 92

// newDayChart returns the chart of the lines of a report, nil if there is nothing to draw. alone: only of what was
// recorded.
func newDayChart(lines []storage.SavingsLine, alone bool) *dayChart {
	if len(lines) == 0 {
		return nil
	}
	c := &dayChart{Alone: alone}
	for i := range lines {
		c.Dollars = c.Dollars || lines[i].CostWithout > 0
	}
	unit, sums := periods(lines)
	c.Unit = unit.name
	first, last := sums[0].day, sums[len(sums)-1].day
	c.First, c.Last = lines[len(lines)-1].Day, lines[0].Day // the newest is first
	by := make(map[time.Time]*period, len(sums))
	for _, s := range sums {
		by[s.day] = s
	}
	for day := first; !day.After(last); day = unit.next(day) {
		bar := dayBar{Day: day.Format(time.DateOnly)}
		if s := by[day]; s != nil {
			bar.with, bar.without = float64(s.TokensSent()), float64(s.TokensWithout)
			if c.Dollars {
				bar.with, bar.without = s.Spent(), s.CostWithout
			}
			words := operation.SavedWords(s.Savings)
			if alone {
				words = aloneWords(&s.Savings)
			}
			bar.Words = fmt.Sprintf("%s%s: %s, %s", unit.prefix, bar.Day, pluralOf(s.Requests, "request"), words)
		}
		c.Bars = append(c.Bars, bar)
	}
	c.place()
	return c
}

// aloneWords say what was sent and what it has cost.
func aloneWords(s *storage.Savings) string {
	text := thousands(s.TokensSent()) + " tokens in"
	if s.Cost > 0 {
		text += "; list price " + dollars(s.Cost)
	}
	return text
}

// place computes the rectangles.
func (c *dayChart) place() {
	largest := 0.0
	for _, b := range c.Bars {
		largest = max(largest, b.with, b.without)
	}
	c.Largest = short(int(largest)) + " tokens"
	if c.Dollars {
		c.Largest = dollars(largest)
	}
	if largest == 0 {
		largest = 1
	}
	step := min(48, float64(chartWidth)/float64(len(c.Bars)))
	for i := range c.Bars {
		b := &c.Bars[i]
		b.X, b.Width = fmt.Sprintf("%.1f", float64(i)*step+step*.1), fmt.Sprintf("%.1f", step*.8)
		rect := func(value float64) (y, height string) {
			h := value / largest * (chartHeight - chartTop)
			return fmt.Sprintf("%.1f", chartHeight-h), fmt.Sprintf("%.1f", h)
		}
		b.WithY, b.WithHeight = rect(b.with)
		b.WithoutY, b.WithoutHeight = rect(b.without)
	}
}

// period is a sum of days.
type period struct {
	day time.Time // the first one
	storage.Savings
}

// timeUnit is the length of a period.
type timeUnit struct {
	name, prefix string
	start, next  func(time.Time) time.Time
}

var timeUnits = []timeUnit{
	{"day", "", func(t time.Time) time.Time { return t }, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"week", "Week from ", func(t time.Time) time.Time { return t.AddDate(0, 0, -(int(t.Weekday())+6)%7) }, func(t time.Time) time.Time { return t.AddDate(0, 0, 7) }},
	{"month", "Month from ", func(t time.Time) time.Time { return t.AddDate(0, 0, 1-t.Day()) }, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
}

// periods sums up lines by the shortest unit with at most maxBars periods, in the order of
// time. Days that are not dates do not count.
func periods(lines []storage.SavingsLine) (timeUnit, []*period) {
	for n, unit := range timeUnits {
		by := make(map[time.Time]*period)
		var list []*period
		for i := range lines {
			day, err := time.Parse(time.DateOnly, lines[i].Day)
			if err != nil {
				continue
			}
			day = unit.start(day)
			if by[day] == nil {
				by[day] = &period{day: day}
				list = append(list, by[day])
			}
			by[day].Add(lines[i].Savings)
		}
		slices.SortFunc(list, func(a, b *period) int { return a.day.Compare(b.day) })
		if len(list) == 0 {
			return unit, []*period{{}}
		}
		bars := 0
		for day := list[0].day; !day.After(list[len(list)-1].day) && bars <= maxBars; day = unit.next(day) {
			bars++
		}
		if bars <= maxBars || n == len(timeUnits)-1 {
			return unit, list
		}
	}
	return timeUnits[0], nil
}

// costChart is a chart of the sums of a session's requests, with furl and without.
type costChart struct {
	Dollars         bool
	With, Without   string // points, for SVG
	Largest         string
	EndWith, EndOut string // the values at its end
	Last            int    // the number of the last request
}

// newCostChart returns the chart of a session's requests, nil if there are fewer than two.
// The first ones were imported: nothing is known of them without furl.
func newCostChart(requests []session.Request, imported int, inDollars bool) *costChart {
	if len(requests) < 2 {
		return nil
	}
	with, without := make([]float64, len(requests)), make([]float64, len(requests))
	var sumWith, sumWithout float64
	for i := range requests {
		q := &requests[i]
		if inDollars {
			sumWith += q.Cost + q.Own
			sumWithout += q.Without
		} else {
			sumWith += float64(q.Size + q.OwnTokens)
			sumWithout += float64(q.SizeWithout)
		}
		if i < imported {
			sumWithout = sumWith
		}
		with[i], without[i] = sumWith, sumWithout
	}
	c := &costChart{Dollars: inDollars, Last: len(requests)}
	say := func(x float64) string {
		if inDollars {
			return dollars(x)
		}
		return short(int(x)) + " tokens"
	}
	largest := max(sumWith, sumWithout)
	c.Largest, c.EndWith, c.EndOut = say(largest), say(sumWith), say(sumWithout)
	c.With = curvePoints(with, largest)
	if imported < len(requests) {
		c.Without = curvePoints(without, largest)
	}
	return c
}

// curvePoints places the values of a chart, at most one for each unit of its width.
func curvePoints(values []float64, largest float64) string {
	var b strings.Builder
	step := max(1, len(values)/chartWidth)
	for i := 0; i < len(values); i += step {
		if i+step >= len(values) {
			i = len(values) - 1
		}
		x := float64(i) * chartWidth / float64(len(values)-1)
		y := chartHeight - values[i]/max(largest, 1e-9)*(chartHeight-chartTop)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	return strings.TrimSpace(b.String())
}
