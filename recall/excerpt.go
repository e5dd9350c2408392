package recall

import (
	"strings"
	"unicode/utf8"
)

// Excerpt cuts the piece out of a text that shows best why it fits a query:
// at most limit bytes, text[from:to], with as many different terms of the
// query in it as possible. The string is that piece, with "…" where something
// was cut off. It begins and ends between words, and at the ends of lines
// where that costs little. If nothing of the query is in the text, it is the
// beginning. A limit below the length of a character gives "".
func Excerpt(text, query string, limit int) (excerpt string, from, to int) {
	if len(text) <= limit {
		return text, 0, len(text)
	}
	q := Parse(query)
	if at := bestSpan(text, &q, limit); at.from < at.to {
		from, to = around(text, at, limit)
	} else {
		from, to = around(text, span{}, limit)
	}
	excerpt = text[from:to]
	if from == to {
		return "", from, to
	}
	if from > 0 {
		excerpt = "…" + excerpt
	}
	if to < len(text) {
		excerpt += "…"
	}
	return excerpt, from, to
}

type span struct{ from, to int }

// hit is where a term of the query stands in a text.
type hit struct {
	span
	term int
}

// bestSpan gives the shortest piece of at most limit bytes that holds what
// counts most of the query, the first of several. It is empty if there is
// nothing, and longer than limit if a single hit is.
func bestSpan(text string, q *Query, limit int) span {
	hits := find(text, q)
	if len(hits) == 0 {
		return findPiece(text, q)
	}
	best, bestWeight, weight := span{}, 0.0, 0.0
	held := make([]int, len(q.Terms))
	first, end := 0, 0
	for n, h := range hits {
		end = max(end, h.to) // a whole ends behind its parts
		if held[h.term]++; held[h.term] == 1 {
			weight += q.Terms[h.term].weight()
		}
		// Let go of what is too far away, and of what comes again.
		for ; first < n; first++ {
			f := hits[first]
			if end-f.from <= limit && held[f.term] == 1 {
				break
			}
			if held[f.term]--; held[f.term] == 0 {
				weight -= q.Terms[f.term].weight()
			}
		}
		at := span{hits[first].from, end}
		if weight > bestWeight+slack || weight > bestWeight-slack && at.to-at.from < best.to-best.from {
			best, bestWeight = at, weight
		}
	}
	return best
}

// slack is what sums of weights may differ by and count as equal.
const slack = 1e-9

// find gives the places of the query's terms in a text, in order.
func find(text string, q *Query) []hit {
	type key struct {
		text string
		name bool
	}
	wanted := make(map[key]int, len(q.Terms))
	for i, t := range q.Terms {
		wanted[key{t.Text, t.Kind == Name}] = i
	}
	var hits []hit
	for t := range Terms(text) {
		if i, ok := wanted[key{t.Text, t.Kind == Name}]; ok {
			hits = append(hits, hit{span{t.From, t.To}, i})
		}
	}
	return hits
}

// findPiece looks for the runs of a query inside longer ones.
func findPiece(text string, q *Query) span {
	for _, r := range q.runs {
		if !r.pieceable() {
			continue
		}
		want := lower(r.text)
		for run, at := range runs(text) {
			if strings.Contains(lower(run), want) {
				return span{at, at + len(run)}
			}
		}
	}
	return span{}
}

// around widens a span to limit bytes, a third of what is free before it and
// the rest behind, or narrows it, and moves the ends to where a reader would
// cut.
func around(text string, at span, limit int) (from, to int) {
	limit = max(limit, 0)
	if at.to-at.from > limit {
		from = ceil(text, at.from)
		return from, max(from, floor(text, at.from+limit))
	}
	free := limit - (at.to - at.from)
	from = max(at.from-free/3, 0)
	to = min(from+limit, len(text))
	from = max(to-limit, 0)
	if from > 0 {
		from = startIn(text, from, at.from)
		to = min(from+limit, len(text)) // what was given up in front
	}
	if to < len(text) {
		to = endIn(text, max(at.to, from), to)
	}
	return from, to
}

// startIn gives a good place to begin between from and the hit.
func startIn(text string, from, hit int) int {
	gap := text[from:hit]
	if i := strings.IndexByte(gap, '\n'); i >= 0 && i < len(gap)/2 {
		return from + i + 1
	}
	if i := strings.IndexAny(gap, " \t\n"); i >= 0 {
		return from + i + 1
	}
	return min(ceil(text, from), hit)
}

// endIn gives a good place to end between the hit and to.
func endIn(text string, hit, to int) int {
	gap := text[hit:to]
	if i := strings.LastIndexByte(gap, '\n'); i > len(gap)/2 {
		return hit + i
	}
	if i := strings.LastIndexAny(gap, " \t\n"); i > 0 {
		return hit + i
	}
	return max(floor(text, to), hit)
}

// floor and ceil move a place that is inside a character to its ends.
func floor(text string, i int) int {
	for n := 0; n < utf8.UTFMax-1 && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}

func ceil(text string, i int) int {
	for n := 0; n < utf8.UTFMax-1 && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i++
	}
	return i
}
