package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl/replay"
)

// Measures of the picture of a session, in pixels; horizontally it is as wide
// as there is room, and plots are drawn in plotWidth units that are stretched.
const (
	plotWidth  = 1000
	plotHeight = 280
	rugHeight  = 13 // of one policy's row
	labelRoom  = 14 // between the labels at the ends of lines
)

// Bounds on what is drawn.
const (
	maxPoints  = 320 // of one line
	maxMarks   = 16  // of one line
	maxGaps    = 60
	rugBins    = 500
	maxLargest = 12 // rows below a picture
)

// cold is how long a pause is after which caches of the default lifetime have
// forgotten.
const cold = 5 * time.Minute

// chart is the context of one session over time, under each policy.
type chart struct {
	ID, Title, Sub, Summary string
	Requests                int
	Top                     float64 // of the axis, in tokens
	Height, Rugs            int
	X, Y                    []tick
	Window                  *tick
	Lines                   []line
	Draw                    []line // the same, what lies on top last
	Gaps                    []tick
	Largest                 []reduction
	LeftOut                 int // reductions that Largest has no room for
}

// tick is a place on an axis: a percentage across, or pixels down.
type tick struct {
	At    string
	Y     int
	Label string
}

// reduction is one row of the table below a chart.
type reduction struct {
	Policy, Stage, Freed string
	Request              int
	freed                int
}

// newChart draws the longest session of a recording. It returns nil if there
// is nothing to draw.
func newChart(id, title string, rec *replay.RecordingReport, results []replay.Result, keys map[string]key, best string) *chart {
	session, sessions := longest(results)
	if session < 0 {
		return nil
	}
	c := &chart{ID: id, Title: title, Height: plotHeight}
	top, limit := 0, 0
	for i := range results {
		s := at(results[i].Series, session)
		c.Requests = max(c.Requests, len(s.Points))
		limit = max(limit, s.Window)
		for j := range s.Points {
			top = max(top, s.Points[j].Tokens)
		}
	}
	c.describe(rec, sessions, limit)
	// The window belongs into the picture unless it would press everything
	// else to the ground.
	if limit > 0 && limit <= 2*top {
		top = max(top, limit+limit/50)
	}
	// And what does not fit the window must not either: such lines leave the
	// picture at its upper edge.
	if limit > 0 && top > 2*limit {
		c.Sub += ", the picture ends at " + short(float64(2*limit))
		top = 2 * limit
	}
	y := scale{0, float64(max(top, 1))}
	y = scale{0, y.widened(5).hi}
	if y.hi > float64(top)*1.15 {
		y.hi = float64(top) * 1.05
	}
	c.Top = y.hi
	x := scale{1, float64(max(c.Requests, 2))}
	c.axes(x, y, limit)
	for i := range results {
		if s := at(results[i].Series, session); len(s.Points) > 0 {
			k := keys[results[i].Policy]
			l := newLine(k, s.Points, x, y)
			l.Best = results[i].Policy == best
			l.Rug.Y = len(c.Lines)*rugHeight + rugHeight/2
			c.Lines = append(c.Lines, l)
			c.largest(k.Name, s.Points)
		}
	}
	c.Rugs = len(c.Lines) * rugHeight
	c.layer()
	c.spread()
	c.gaps(at(results[0].Series, session).Points, x)
	c.summarise()
	return c
}

// longest is the index of the session with most requests, and how many there
// are; -1 if none has any.
func longest(results []replay.Result) (session, sessions int) {
	session = -1
	most := 0
	for i := range results {
		sessions = max(sessions, len(results[i].Series))
		for j := range results[i].Series {
			if n := len(results[i].Series[j].Points); n > most {
				session, most = j, n
			}
		}
	}
	return session, sessions
}

func at(series []replay.Series, i int) replay.Series {
	if i < 0 || i >= len(series) {
		return replay.Series{}
	}
	return series[i]
}

func (c *chart) describe(rec *replay.RecordingReport, sessions, limit int) {
	parts := make([]string, 0, 4)
	for _, s := range []string{rec.Agent, rec.Model} {
		if s != "" {
			parts = append(parts, name(s))
		}
	}
	parts = append(parts, counted(c.Requests, "request"))
	if sessions > 1 {
		parts = append(parts, "the longest of "+counted(sessions, "session"))
	}
	if limit > 0 {
		parts = append(parts, "window "+short(float64(limit)))
	}
	c.Sub = strings.Join(parts, " · ")
}

func (c *chart) axes(x, y scale, limit int) {
	for _, v := range y.ticks(5) {
		c.Y = append(c.Y, tick{Y: down(y, v), Label: short(v)})
	}
	for i, v := range x.ticks(6) {
		if v < 1 {
			v = 1
		}
		if v != float64(int(v)) || i > 0 && x.at(v) < 0.08 {
			continue
		}
		c.X = append(c.X, tick{At: percent(x.at(v)), Label: count(int(v))})
	}
	if limit > 0 && float64(limit) <= y.hi {
		c.Window = &tick{Y: down(y, float64(limit)), Label: "window " + short(float64(limit))}
	}
}

// down is where a value lies, in pixels from the top; what is above the scale
// lies on its edge.
func down(y scale, v float64) int { return plotHeight - int(y.at(v)*plotHeight+0.5) }

// largest adds a policy's reductions to the table below the chart.
func (c *chart) largest(policy string, points []replay.Point) {
	for i := range points {
		if p := &points[i]; len(p.Reduced) > 0 {
			c.Largest = append(c.Largest, reduction{policy, stages(p.Reduced), count(p.Freed), i + 1, p.Freed})
		}
	}
	slices.SortStableFunc(c.Largest, func(a, b reduction) int { return b.freed - a.freed })
	if n := len(c.Largest); n > maxLargest {
		c.LeftOut += n - maxLargest
		c.Largest = c.Largest[:maxLargest]
	}
}

// layer puts policy none above what it coincides with, which shows through its
// dashes, and the best policy above all.
func (c *chart) layer() {
	rank := func(l line) int {
		switch {
		case l.Best:
			return 2
		case l.Key.Policy == none:
			return 1
		}
		return 0
	}
	c.Draw = slices.Clone(c.Lines)
	slices.SortStableFunc(c.Draw, func(a, b line) int { return rank(a) - rank(b) })
}

// spread moves the labels at the ends of the lines apart.
func (c *chart) spread() {
	order := make([]int, len(c.Lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.Lines[a].End.Y - c.Lines[b].End.Y })
	next := 6
	for _, i := range order {
		e := &c.Lines[i].End
		e.LabelY = max(e.Y, next)
		next = e.LabelY + labelRoom
	}
	over := plotHeight
	for _, i := range slices.Backward(order) {
		e := &c.Lines[i].End
		e.LabelY = min(e.LabelY, over)
		over = e.LabelY - labelRoom
	}
}

// gaps notes the longest pauses in which a cache grows cold.
func (c *chart) gaps(points []replay.Point, x scale) {
	type gap struct {
		at   int
		took time.Duration
	}
	var found []gap
	for i := 1; i < len(points); i++ {
		a, b := points[i-1].At, points[i].At
		if took := b.Sub(a); !a.IsZero() && !b.IsZero() && took > cold {
			found = append(found, gap{i, took})
		}
	}
	slices.SortStableFunc(found, func(a, b gap) int { return int((b.took - a.took) / time.Second) })
	for _, g := range found[:min(len(found), maxGaps)] {
		c.Gaps = append(c.Gaps, tick{At: percent(x.at(float64(g.at + 1))), Label: fmt.Sprintf("a pause of %s before request %s", pause(g.took), count(g.at+1))})
	}
}

// pause writes a duration in its two largest units.
func pause(d time.Duration) string {
	switch d = d.Round(time.Minute); {
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return counted(int(d.Hours())/24, "day")
	}
}

// summarise says in words what the picture shows, for those who hear it.
func (c *chart) summarise() {
	var b strings.Builder
	fmt.Fprintf(&b, "Prompt size over %s.", counted(c.Requests, "request"))
	for i := range c.Lines {
		l := &c.Lines[i]
		fmt.Fprintf(&b, " %s ends at %s tokens after %s.", l.Key.Name, l.End.Value, counted(l.Rug.Count, "reduction"))
	}
	c.Summary = b.String()
}
