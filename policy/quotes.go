package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// A user message quotes a result if both have the same quoteChars characters in a
// row, or if it has a whole line of the result with at least quoteLine characters,
// with white space folded (A8). A quote has at least quoteWords letters or digits,
// so that rulers and the like do not count.
const (
	quoteChars = 40
	quoteLine  = 20
	quoteWords = 10
)

// spareQuoted returns the results that no later user message quotes. It reads each
// result and each message once.
func spareQuoted(picked []Result) []Result {
	if len(picked) == 0 {
		return picked
	}
	x := newQuotes(picked)
	s := picked[0].View.State
	for i := x.first + 1; i < s.Len(); i++ {
		_, m := s.Message(i)
		if m.Role != furl.RoleUser {
			continue
		}
		for j := range m.Blocks {
			if b := &m.Blocks[j]; b.Kind == furl.KindText && !b.Observation {
				x.search(i, lexer.Fold(b.Text))
			}
		}
	}
	kept := picked[:0]
	for i := range picked {
		if !x.results[i].quoted {
			kept = append(kept, picked[i])
		}
	}
	return kept
}

// quotes finds the results that a text quotes. Any quoteChars characters in a
// row hold a piece of quoteLine that starts at a multiple of quoteLine, so it
// is enough to know these pieces of the results, and the first quoteLine
// characters of each line.
type quotes struct {
	results []quotable
	first   int // message of the oldest result
	pieces  map[uint64][]piece
	// maybe has a bit for each piece, so that most of a text needs no lookup in
	// the map.
	maybe [1 << 10]uint64
}

type quotable struct {
	message int
	text    string // folded
	quoted  bool
}

// piece is where a result holds quoteLine characters.
type piece struct {
	result, at int
	line       int // length in bytes of the line that starts there; 0: none
}

// maxPieces limits how many results, or places in a result, with the same text are
// compared.
const maxPieces = 16

func newQuotes(picked []Result) *quotes {
	x := &quotes{pieces: make(map[uint64][]piece)}
	s := picked[0].View.State
	x.first = s.Len()
	for i := range picked {
		at, _ := s.Find(picked[i].Block.Pos.Msg)
		x.first = min(x.first, at)
		x.results = append(x.results, quotable{message: at})
		x.add(i, picked[i].Block.Block.Text)
	}
	return x
}

// add notes the pieces of a result.
func (x *quotes) add(result int, text string) {
	var folded strings.Builder
	folded.Grow(len(text))
	var lines []piece
	for l := range strings.Lines(text) {
		if l = lexer.Fold(l); l == "" {
			continue
		}
		if folded.Len() > 0 {
			folded.WriteByte(' ')
		}
		if len(l) >= quoteLine {
			lines = append(lines, piece{result: result, at: folded.Len(), line: len(l)})
		}
		folded.WriteString(l)
	}
	text = folded.String()
	x.results[result].text = text
	var w window
	chars := 0
	for i, r := range text {
		if w.push(r, i) {
			start := w.start()
			for len(lines) > 0 && lines[0].at < start {
				lines = lines[1:] // fewer characters than bytes
			}
			if len(lines) > 0 && lines[0].at == start {
				if i+utf8.RuneLen(r) <= start+lines[0].line {
					x.note(w.sum, lines[0])
				}
				lines = lines[1:]
			}
			if (chars+1)%quoteLine == 0 {
				x.note(w.sum, piece{result: result, at: start})
			}
		}
		chars++
	}
}

func (x *quotes) note(sum uint64, p piece) {
	if len(x.pieces[sum]) < maxPieces {
		x.pieces[sum] = append(x.pieces[sum], p)
		x.maybe[sum>>6&(1<<10-1)] |= 1 << (sum & 63)
	}
}

// search marks the results that the folded text of a later message quotes.
func (x *quotes) search(message int, text string) {
	var w window
	for i, r := range text {
		if !w.push(r, i) || x.maybe[w.sum>>6&(1<<10-1)]&(1<<(w.sum&63)) == 0 {
			continue
		}
		for _, p := range x.pieces[w.sum] {
			q := &x.results[p.result]
			if q.quoted || q.message >= message {
				continue
			}
			if p.line > 0 {
				q.quoted = holdsLine(text, w.start(), q.text[p.at:p.at+p.line])
			} else {
				q.quoted = sameRun(text, w.start(), q.text, p.at)
			}
		}
	}
}

// holdsLine reports whether a text has a whole line at a place, and not as part of
// longer words.
func holdsLine(text string, at int, line string) bool {
	if !strings.HasPrefix(text[at:], line) || !says(line) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+len(line):])
	first, _ := utf8.DecodeRuneInString(line)
	last, _ := utf8.DecodeLastRuneInString(line)
	return !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(after))
}

// sameRun reports whether two texts have the same quoteChars characters around
// these places.
func sameRun(a string, i int, b string, j int) bool {
	lo, hi, n := i, i, 0
	for back := j; n < quoteChars && lo > 0 && back > 0; n++ {
		r, size := utf8.DecodeLastRuneInString(a[:lo])
		s, size2 := utf8.DecodeLastRuneInString(b[:back])
		if r != s || size != size2 {
			break
		}
		lo, back = lo-size, back-size
	}
	for ; n < quoteChars && hi < len(a) && j < len(b); n++ {
		r, size := utf8.DecodeRuneInString(a[hi:])
		s, size2 := utf8.DecodeRuneInString(b[j:])
		if r != s || size != size2 {
			break
		}
		hi, j = hi+size, j+size
	}
	return n >= quoteChars && says(a[lo:hi])
}

// says reports whether there are enough letters and digits in a text.
func says(text string) bool {
	n := 0
	for _, r := range text {
		if inWord(r) {
			if n++; n >= quoteWords {
				return true
			}
		}
	}
	return false
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// window hashes the last quoteLine characters of a text as it goes along.
type window struct {
	sum   uint64
	runes [quoteLine]rune
	at    [quoteLine]int // byte offsets
	n     int
}

const hashBase = 0x9E3779B97F4A7C15 // odd, and many bits

// leaving is hashBase to the power of quoteLine.
var leaving = func() uint64 {
	p := uint64(1)
	for range quoteLine {
		p *= hashBase
	}
	return p
}()

// push takes the next character; true if there are enough.
func (w *window) push(r rune, at int) bool {
	k := w.n % quoteLine
	w.sum = w.sum*hashBase + uint64(r) - uint64(w.runes[k])*leaving
	w.runes[k], w.at[k] = r, at
	w.n++
	return w.n >= quoteLine
}

// start is the offset of the first of them.
func (w *window) start() int { return w.at[w.n%quoteLine] }
