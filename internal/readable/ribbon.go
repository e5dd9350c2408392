package readable

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

// ribbon is the context as a strip to scale of tokens, and the size of the prompt at each
// request.
type ribbon struct {
	Segments []segment
	Kinds    []kindTotal
	Curve    *curve
	// In tokens as counted.
	visible, hidden int
	runs            []run
}

// segment is a part of the strip.
type segment struct {
	Class, X, Width string
	Texture         string   // id of a pattern, "" for none
	Seq             furl.Seq // the record that it leads to; 0 for none
}

// kindTotal is a line of the legend.
type kindTotal struct{ Class, Name, Tokens, Texture string }

// curve is the size of the prompt over the requests, in a box of 1000 by 100.
type curve struct {
	Points  string
	Marks   []string // x of the requests after a reduction
	Largest string
	N       string
}

// run is consecutive tokens of one kind.
type run struct {
	kind   int // of ribbonKinds
	tokens int
	seq    furl.Seq
	hidden bool
}

// ribbonKinds are the kinds of parts of a context, in the order of the legend.
var ribbonKinds = []struct{ class, name, texture string }{
	{"system", "instructions", ""}, {"user", "user", ""}, {"assistant", "assistant", ""}, {"call", "calls", ""}, {"thinking", "thinking", "dots"},
	{"result", "results", "lines"}, {"summary", "summaries", "hatch"}, {"placeholder", "placeholders", "hatch"},
}

// The indexes of ribbonKinds.
const (
	ribbonSystem = iota
	ribbonUser
	ribbonAssistant
	ribbonCall
	ribbonThinking
	ribbonResult
	ribbonSummary
	ribbonPlaceholder
)

// ribbonKind returns the kind of a block.
func ribbonKind(m *furl.Message, b *furl.Block) int {
	switch {
	case b.Kind == furl.KindThinking:
		return ribbonThinking
	case b.IsResult():
		return ribbonResult
	case b.Kind == furl.KindCall:
		return ribbonCall
	case m.Role == furl.RoleAssistant:
		return ribbonAssistant
	case m.Role == furl.RoleSystem, m.Role == furl.RoleDeveloper:
		return ribbonSystem
	}
	return ribbonUser
}

// ribbon returns the strip of the conversation, or of the view if that is shown.
func (s *Session) ribbon(path []furl.Record) *ribbon {
	r := &ribbon{}
	for i := range s.Preamble {
		r.add(ribbonSystem, s.Preamble[i].Tokens, 0, false)
	}
	if s.View != nil {
		s.viewRuns(r)
	} else {
		s.allRuns(r)
	}
	r.draw()
	r.Curve = newCurve(path)
	return r
}

func (r *ribbon) add(kind, tokens int, seq furl.Seq, hidden bool) {
	if tokens <= 0 {
		return
	}
	if hidden {
		r.hidden += tokens
	} else {
		r.visible += tokens
	}
	r.runs = append(r.runs, run{kind, tokens, seq, hidden})
}

// viewRuns adds what the model sees.
func (s *Session) viewRuns(r *ribbon) {
	for i := range s.View.Messages {
		sh := &s.View.Messages[i]
		link := sh.Seq
		if sh.Msg.Role == "" {
			link = 0
		}
		for j := range sh.Blocks {
			sb := &sh.Blocks[j]
			kind := ribbonKind(sh.Msg, sb.Block)
			switch {
			case sh.Index < 0:
				kind = ribbonSummary
			case sb.By != 0:
				kind = ribbonPlaceholder
			}
			r.add(kind, sb.Tokens, link, false)
		}
	}
}

// allRuns adds all messages of the path, and what the model sees instead of hidden ones.
func (s *Session) allRuns(r *ribbon) {
	instead := s.insteads()
	for i := range s.State.Len() {
		seq, m := s.State.Message(i)
		link := seq
		if m.Role == "" { // not on the page
			link = 0
		}
		for j := range m.Blocks {
			pos := furl.Pos{Msg: seq, Block: j}
			by := s.State.ShownBy(pos)
			for _, in := range instead[pos] {
				if in.by == by {
					r.add(in.kind, in.tokens, link, false)
				}
			}
			r.add(ribbonKind(m, &m.Blocks[j]), m.Blocks[j].Tokens, link, by != 0)
		}
	}
}

// insteadRun is what a reduction shows at the start of what it hides.
type insteadRun struct {
	by           furl.Seq
	kind, tokens int
}

// insteads lists what reductions show, by the first block that it stands for.
func (s *Session) insteads() map[furl.Pos][]insteadRun {
	found := make(map[furl.Pos][]insteadRun)
	for red := range s.State.Reductions() {
		for _, item := range red.Items {
			switch show := item.Show.(type) {
			case furl.In:
				for _, sp := range item.Spans {
					found[sp.First] = append(found[sp.First], insteadRun{red.Seq, ribbonPlaceholder, show.Tokens})
				}
			case furl.Mark:
				tokens := 0
				for _, m := range show.Messages {
					tokens += m.Tokens()
				}
				if len(item.Spans) > 0 {
					found[item.Spans[0].First] = append(found[item.Spans[0].First], insteadRun{red.Seq, ribbonSummary, tokens})
				}
			}
		}
	}
	return found
}

// Bounds on the strip.
const (
	columns   = 800  // of the strip; a part has at least one
	mostOfGap = 0.25 // the share of the strip that hidden parts take at most
)

// draw divides the strip into columns, each of which has the kind of what is in its middle,
// and joins those of one kind. Hidden parts have a scale of their own if they would take
// too much.
func (r *ribbon) draw() {
	all := float64(r.visible + r.hidden)
	if all == 0 {
		return
	}
	visible, hidden := columns/all, columns/all
	if float64(r.hidden)*hidden > mostOfGap*columns && r.visible > 0 {
		hidden = mostOfGap * columns / float64(r.hidden)
		visible = (1 - mostOfGap) * columns / float64(r.visible)
	}
	at, x := 0, 0.0 // of the run, and its end
	var last *run
	from := 0
	flush := func(to int) {
		if last != nil && to > from {
			r.segment(last, from, to)
		}
		from = to
	}
	next := func(i int) float64 {
		if r.runs[i].hidden {
			return hidden * float64(r.runs[i].tokens)
		}
		return visible * float64(r.runs[i].tokens)
	}
	end := next(0)
	for c := range columns {
		for x = float64(c) + .5; end < x && at < len(r.runs)-1; {
			at++
			end += next(at)
		}
		if cur := &r.runs[at]; last == nil || !last.joins(cur, next(at)) {
			flush(c)
			last = cur
		}
	}
	flush(columns)
	r.legend()
}

// wide is the number of columns from which a part has a segment of its own.
const wide = 4

// joins reports whether a run is shown in one segment with the next one, which has a number
// of columns: hidden ones of any kind, and others of the same kind unless they are wide.
func (of *run) joins(next *run, width float64) bool {
	if of.hidden || next.hidden {
		return of.hidden && next.hidden
	}
	return of.kind == next.kind && (of.seq == next.seq || width < wide)
}

func (r *ribbon) segment(of *run, from, to int) {
	percent := func(n int) string { return strconv.FormatFloat(100*float64(n)/columns, 'f', -1, 64) + "%" }
	s := segment{Class: ribbonKinds[of.kind].class, X: percent(from), Width: percent(to - from), Texture: ribbonKinds[of.kind].texture, Seq: of.seq}
	if of.hidden {
		s.Class, s.Texture = s.Class+" gone", ""
	}
	r.Segments = append(r.Segments, s)
}

// legend sums up the kinds.
func (r *ribbon) legend() {
	sums := make([]int, len(ribbonKinds))
	for _, of := range r.runs {
		if !of.hidden {
			sums[of.kind] += of.tokens
		}
	}
	for i, n := range sums {
		if n > 0 {
			r.Kinds = append(r.Kinds, kindTotal{ribbonKinds[i].class, ribbonKinds[i].name, numbers.Thousands(n), ribbonKinds[i].texture})
		}
	}
	if r.hidden > 0 {
		r.Kinds = append(r.Kinds, kindTotal{"gone", "hidden from the model", numbers.Thousands(r.hidden), ""})
	}
}

// newCurve draws the reported sizes of prompts, nil if there are fewer than two.
func newCurve(path []furl.Record) *curve {
	var sizes []int
	var marks []int
	largest, reduced := 0, false
	for _, rec := range path {
		switch b := rec.Body.(type) {
		case *furl.Reduction:
			reduced = true
		case *furl.Exchange:
			if n := b.Usage.Prompt(); n > 0 {
				if reduced {
					marks = append(marks, len(sizes))
				}
				sizes, largest, reduced = append(sizes, n), max(largest, n), false
			}
		}
	}
	if len(sizes) < 2 {
		return nil
	}
	x := func(i int) string { return strconv.FormatFloat(1000*float64(i)/float64(len(sizes)-1), 'f', 1, 64) }
	c := &curve{Largest: numbers.Thousands(largest), N: numbers.Thousands(len(sizes))}
	var points strings.Builder
	step := max(1, len(sizes)/2000) // of longer sessions, the largest of each stretch
	for i := 0; i < len(sizes); i += step {
		best := i
		for j := i; j < min(i+step, len(sizes)); j++ {
			if sizes[j] > sizes[best] {
				best = j
			}
		}
		fmt.Fprintf(&points, "%s,%.1f ", x(best), 100-96*float64(sizes[best])/float64(largest))
	}
	c.Points = strings.TrimSpace(points.String())
	for i, m := range marks {
		if i < 400 {
			c.Marks = append(c.Marks, x(m))
		}
	}
	return c
}
