package report

import (
	"slices"
	"strings"

	"github.com/furlhq/furl/replay"
)

// line is one policy in a timeline. Numbers that grow are embedded as
// differences, which take half the space.
type line struct {
	Policy int    `json:"policy"` // the index of its key
	Name   string `json:"name"`
	Best   bool   `json:"best,omitempty"`
	// AsRecorded is the line that hides nothing.
	AsRecorded bool `json:"asRecorded,omitempty"`
	// X has the request of each point, as differences. It is empty if the line
	// has a point for each request.
	X []int `json:"x,omitempty"`
	// Tokens has the prompt size at each point, as differences.
	Tokens []int `json:"tokens"`
	// Refused lists the points that do not fit the window, as runs: the first
	// and the last index.
	Refused [][2]int `json:"refused,omitempty"`
	// Reductions are triples: the request, as a difference, the tokens
	// removed, and the index in Stages.
	Reductions []int    `json:"reductions,omitempty"`
	Stages     []string `json:"stages,omitempty"`
	// Count is the number of reductions.
	Count int `json:"count"`
}

func newLine(k key, points []replay.Point) line {
	l := line{Policy: k.Index, Name: k.Name, AsRecorded: k.Policy == none}
	kept := thin(points, maxPoints)
	request, tokens := 0, 0
	for at, i := range kept {
		if len(kept) < len(points) {
			l.X = append(l.X, i+1-request)
			request = i + 1
		}
		n := bounded(points[i].Tokens)
		l.Tokens = append(l.Tokens, n-tokens)
		tokens = n
		if !points[i].Refused {
			continue
		}
		if last := len(l.Refused) - 1; last >= 0 && l.Refused[last][1] == at-1 {
			l.Refused[last][1] = at
		} else {
			l.Refused = append(l.Refused, [2]int{at, at})
		}
	}
	l.reductions(points)
	return l
}

// reductions adds the reductions; of each of maxPoints stretches of a session
// that has more requests, only the largest.
func (l *line) reductions(points []replay.Point) {
	request := 0
	stretch := -1
	freed := 0
	for i := range points {
		p := &points[i]
		if len(p.Reduced) == 0 {
			continue
		}
		l.Count += len(p.Reduced)
		n := bounded(p.Freed)
		if s := i * maxPoints / max(len(points), maxPoints); s != stretch {
			stretch = s
		} else if n <= freed {
			continue
		} else { // replace the last one
			end := len(l.Reductions) - 3
			request -= l.Reductions[end]
			l.Reductions = l.Reductions[:end]
		}
		freed = n
		l.Reductions = append(l.Reductions, i+1-request, n, l.stage(stages(p.Reduced)))
		request = i + 1
	}
}

// maxStages bounds the names in one line; the last one is for all others.
const maxStages = 50

func (l *line) stage(name string) int {
	if i := slices.Index(l.Stages, name); i >= 0 {
		return i
	}
	if len(l.Stages) == maxStages {
		return maxStages - 1
	}
	if len(l.Stages) == maxStages-1 {
		name = "…"
	}
	l.Stages = append(l.Stages, name)
	return len(l.Stages) - 1
}

// bounded limits a number of tokens to what a chart can have.
func bounded(n int) int { return min(max(n, 0), 1_000_000_000) }

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
