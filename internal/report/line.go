package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/replay"
)

// line is one policy in a chart.
type line struct {
	Key     key
	Best    bool
	Points  string
	Refused []string // runs of points that could not be sent
	Marks   []mark
	End     endLabel
	Rug     rug
}

type mark struct {
	X     string
	Y     int
	Title string
}

// endLabel names a line where it ends.
type endLabel struct {
	Y, LabelY int
	Value     string
}

// rug shows when a policy reduced.
type rug struct {
	Path  string
	Y     int
	Title string
	Count int
}

func newLine(k key, points []replay.Point, x, y scale) line {
	l := line{Key: k}
	place := func(i int) string {
		return trimmed(plotWidth*x.at(float64(i+1)), 1) + "," + trimmed(plotHeight*(1-y.beyond(float64(points[i].Tokens))), 1)
	}
	kept := thin(points, maxPoints)
	var all, run []string
	flush := func() {
		if len(run) > 0 {
			l.Refused = append(l.Refused, strings.Join(run, " "))
			run = nil
		}
	}
	for _, i := range kept {
		p := place(i)
		all = append(all, p)
		if points[i].Refused {
			run = append(run, p)
		} else {
			flush()
		}
	}
	flush()
	l.Points = strings.Join(all, " ")
	last := points[len(points)-1].Tokens
	l.End = endLabel{Y: down(y, float64(last)), Value: short(float64(last))}
	if float64(last) > y.hi {
		l.End.Value += " ↑"
	}
	l.Marks = marks(points, x, y)
	l.Rug = newRug(k, points, x)
	return l
}

// thin picks at most about most points: of each of most/2 stretches the
// lowest and the highest, and both ends.
func thin(points []replay.Point, most int) []int {
	n := len(points)
	if n <= most {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	buckets := max(1, most/2)
	kept := []int{0}
	for b := range buckets {
		from, to := b*n/buckets, (b+1)*n/buckets
		lo, hi := from, from
		for i := from; i < to; i++ {
			if points[i].Tokens < points[lo].Tokens {
				lo = i
			}
			if points[i].Tokens > points[hi].Tokens {
				hi = i
			}
		}
		kept = append(kept, min(lo, hi), max(lo, hi))
	}
	return slices.Compact(append(kept, n-1))
}

// marks puts signs on a line where it was reduced, unless it was so all the
// time: then the rug tells.
func marks(points []replay.Point, x, y scale) []mark {
	var out []mark
	for i := range points {
		p := &points[i]
		if len(p.Reduced) == 0 {
			continue
		}
		if len(out) == maxMarks {
			return nil
		}
		if float64(p.Tokens) > y.hi {
			continue
		}
		out = append(out, mark{
			X:     percent(x.at(float64(i + 1))),
			Y:     down(y, float64(p.Tokens)),
			Title: fmt.Sprintf("request %s: %s freed %s tokens", count(i+1), stages(p.Reduced), count(p.Freed)),
		})
	}
	return out
}

// stages names the stages of one request, each once.
func stages(list []string) string {
	var out []string
	for _, s := range list {
		if s = clean(s, 40); !slices.Contains(out, s) {
			if len(out) == 4 {
				out = append(out, "…")
				break
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func newRug(k key, points []replay.Point, x scale) rug {
	var r rug
	freed, last := 0, -1
	var b strings.Builder
	for i := range points {
		n := len(points[i].Reduced)
		if n == 0 {
			continue
		}
		r.Count += n
		freed += points[i].Freed
		if bin := int(x.at(float64(i+1)) * rugBins); bin > last {
			last = bin
			b.WriteString("M" + strconv.Itoa(bin*plotWidth/rugBins) + " 0v8")
		}
	}
	r.Path = b.String()
	r.Title = fmt.Sprintf("%s: %s, %s tokens freed", k.Name, counted(r.Count, "reduction"), count(freed))
	return r
}
