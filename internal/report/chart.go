package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl/replay"
)

// Bounds on what is embedded for the chart of one recording.
const (
	maxPoints  = 2000 // of one line; longer sessions are thinned
	maxPauses  = 60
	maxLargest = 12 // rows in the table of reductions
)

// expiry is the pause after which prompt caches of the default lifetime have
// expired.
const expiry = 5 * time.Minute

// chart shows the prompt size of one session over time, under each policy. The
// page's script draws Timeline; the other fields are text and tables, which
// need no script.
type chart struct {
	ID, Title, Sub, Summary string
	Requests                int
	Timeline                timeline
	Rows                    []chartRow
	Largest                 []reduction
}

// timeline is the data of the drawing, embedded in the page as JSON.
type timeline struct {
	Requests int `json:"requests"`
	Top      int `json:"top"` // of the axis, in tokens
	Window   int `json:"window,omitempty"`
	// From and To are the requests that the chart shows at first, because the policies
	// differ only there; 0: all.
	From   int     `json:"from,omitempty"`
	To     int     `json:"to,omitempty"`
	Lines  []line  `json:"lines"`
	Pauses []pause `json:"pauses,omitempty"`
}

// pause is a time before a request in which the prompt cache expired.
type pause struct {
	Request int    `json:"request"`
	Took    string `json:"took"`
}

// chartRow sums up one line.
type chartRow struct {
	Key                                key
	Last, Largest, Reductions, Removed string
}

// reduction is one row of the table of the largest reductions.
type reduction struct {
	Policy, Stage, Removed string
	Request                int
	removed                int
}

// From is the first request that the chart shows at first.
func (c *chart) From() string { return count(c.Timeline.From) }

// To is the last request that the chart shows at first.
func (c *chart) To() string { return count(c.Timeline.To) }

// All is the number of requests.
func (c *chart) All() string { return count(c.Requests) }

// newChart shows the longest session of a recording. It returns nil if no
// session has a request.
func newChart(id, title string, rec *replay.RecordingReport, results []replay.Result, keys map[string]key, best string) *chart {
	session, sessions := longest(results)
	if session < 0 {
		return nil
	}
	c := &chart{ID: id, Title: title}
	largest, window := 0, 0
	for i := range results {
		s := at(results[i].Series, session)
		c.Requests = max(c.Requests, len(s.Points))
		window = max(window, bounded(s.Window))
		for j := range s.Points {
			largest = max(largest, bounded(s.Points[j].Tokens))
		}
	}
	c.describe(rec, sessions, window)
	c.Timeline.Requests = c.Requests
	c.scale(largest, window)
	for i := range results {
		if s := at(results[i].Series, session); len(s.Points) > 0 {
			k := keys[results[i].Policy]
			l := newLine(k, s.Points)
			l.Best = results[i].Policy == best
			c.Timeline.Lines = append(c.Timeline.Lines, l)
			c.row(k, s.Points)
			c.largest(k.Name, s.Points)
		}
	}
	c.focus(results, session)
	c.pauses(at(results[0].Series, session).Points)
	c.summarize()
	return c
}

// longest is the index of the session with most requests, and the number of
// sessions; -1 if none has a request.
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

func (c *chart) describe(rec *replay.RecordingReport, sessions, window int) {
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
	if window > 0 {
		parts = append(parts, "context window "+short(float64(window)))
	}
	c.Sub = strings.Join(parts, " · ")
}

// scale sets where the axis ends. It includes the window unless that would
// flatten the lines, and ends at twice the window if a line goes far beyond:
// such lines leave the chart at its upper edge.
func (c *chart) scale(largest, window int) {
	top := largest
	if window > 0 && top > 2*window {
		top = 2 * window
		c.Sub += ", chart cut at " + short(float64(top))
	} else {
		if window > 0 && window <= 2*top {
			top = max(top, window)
		}
		top += top / 25
	}
	if window > 0 && window <= top {
		c.Timeline.Window = window
	}
	c.Timeline.Top = max(top, 1)
}

// Bounds on the part of a session on which a chart opens.
const (
	focusShare = 0.85 // of the requests; if it is more, the chart shows all
	leastFocus = 12   // requests
	noticeable = 0.01 // a difference, as a share of the axis
)

// focus finds the part of the session in which the policies differ, and sets the chart to
// open on it, with some requests before and after it.
func (c *chart) focus(results []replay.Result, session int) {
	first, last := 0, 0
	for n := range c.Requests {
		least, most := math.MaxInt, 0
		for i := range results {
			if p := at(results[i].Series, session).Points; n < len(p) {
				size := min(bounded(p[n].Tokens), c.Timeline.Top)
				least, most = min(least, size), max(most, size)
			}
		}
		if float64(most-least) > noticeable*float64(c.Timeline.Top) {
			if last = n + 1; first == 0 {
				first = last
			}
		}
	}
	if first == 0 {
		return
	}
	margin := max(2, (last-first+1)/12, (leastFocus-(last-first+1)+1)/2)
	from, to := max(1, first-margin), min(c.Requests, last+margin)
	if float64(to-from+1) <= focusShare*float64(c.Requests) {
		c.Timeline.From, c.Timeline.To = from, to
	}
}

func (c *chart) row(k key, points []replay.Point) {
	largest, reductions, removed := 0, 0, 0
	for i := range points {
		largest = max(largest, points[i].Tokens)
		if n := len(points[i].Reduced); n > 0 {
			reductions += n
			removed += bounded(points[i].Freed)
		}
	}
	c.Rows = append(c.Rows, chartRow{
		Key: k, Last: count(points[len(points)-1].Tokens), Largest: count(largest), Reductions: count(reductions), Removed: count(removed),
	})
}

// largest adds a policy's reductions to the table of the largest.
func (c *chart) largest(policy string, points []replay.Point) {
	for i := range points {
		if p := &points[i]; len(p.Reduced) > 0 {
			c.Largest = append(c.Largest, reduction{policy, stages(p.Reduced), count(p.Freed), i + 1, p.Freed})
		}
	}
	slices.SortStableFunc(c.Largest, func(a, b reduction) int { return b.removed - a.removed })
	c.Largest = c.Largest[:min(len(c.Largest), maxLargest)]
}

// pauses notes the longest pauses in which the cache expired.
func (c *chart) pauses(points []replay.Point) {
	type gap struct {
		request int
		took    time.Duration
	}
	var found []gap
	for i := 1; i < len(points); i++ {
		a, b := points[i-1].At, points[i].At
		if took := b.Sub(a); !a.IsZero() && !b.IsZero() && took > expiry {
			found = append(found, gap{i + 1, took})
		}
	}
	slices.SortStableFunc(found, func(a, b gap) int { return int((b.took - a.took) / time.Second) })
	for _, g := range found[:min(len(found), maxPauses)] {
		c.Timeline.Pauses = append(c.Timeline.Pauses, pause{g.request, duration(g.took)})
	}
}

// duration writes a duration in its two largest units.
func duration(d time.Duration) string {
	switch d = d.Round(time.Minute); {
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return counted(int(d.Hours())/24, "day")
	}
}

// summarize writes what the chart shows as a sentence for screen readers.
func (c *chart) summarize() {
	var b strings.Builder
	fmt.Fprintf(&b, "Line chart of the prompt size over %s.", counted(c.Requests, "request"))
	for _, r := range c.Rows {
		fmt.Fprintf(&b, " %s: %s tokens at the end, reductions: %s.", r.Key.Name, r.Last, r.Reductions)
	}
	c.Summary = b.String()
}
