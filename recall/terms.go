package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a term is.
type Kind uint8

// The kinds of term.
const (
	Word Kind = iota // a word of prose
	Part             // part of an identifier, a path or a number with marks
	Name             // such a thing as a whole
)

// Term is something a text can be found by.
type Term struct {
	// Text is the term as it is compared: names as they stand; words and
	// parts in lower case without accents, English endings taken off, so
	// that the part "config" of parseConfigs and the word Config are equal.
	Text     string
	Kind     Kind
	From, To int // where it stands in the text, in bytes
}

// What longer runs of characters are worth is not what they would cost.
const (
	maxName = 199 // characters of a name
	maxPart = 64  // bytes of a word or part
	maxCuts = 8   // parts of one identifier without marks
)

// Terms cuts a text into terms, in the order in which they begin; a whole
// comes before its parts.
//
// A run of letters, digits and _ . / : @ # - without . / : - # @ at its ends
// is taken as one. If it contains a digit, one of / _ . - or an upper-case
// letter behind its first character, it is a name; furl.Names has the same
// rule, and a least length that is not asked for here: two characters, of
// which one is no digit, or six will do. Its parts are what stands between
// the marks, and what each of these is made of by case and digits: parseConfig
// gives parseconfig, parse and config. Everything else gives words. Scripts
// written without spaces give pairs of characters.
func Terms(text string) iter.Seq[Term] {
	return func(yield func(Term) bool) {
		for run, at := range runs(text) {
			if !eachTerm(run, func(t Term) bool {
				t.From, t.To = t.From+at, t.To+at
				return yield(t)
			}) {
				return
			}
		}
	}
}

// runs gives the trimmed runs of a text with their offsets. A run longer than
// a name may be comes in its pieces between marks.
func runs(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i := 0; i < len(text); {
			end := runEnd(text, i)
			if end == i {
				_, n := utf8.DecodeRuneInString(text[i:])
				i += n
				continue
			}
			from, to := trim(text, i, end)
			i = end
			if from == to || isEnding(text, from, to) {
				continue
			}
			run := text[from:to]
			if len(run) <= maxName || utf8.RuneCountInString(run) <= maxName {
				if !yield(run, from) {
					return
				}
				continue
			}
			for piece, at := range pieces(run) {
				if !yield(piece, from+at) {
					return
				}
			}
		}
	}
}

// What a byte can be in a run.
const (
	letter uint8 = 1 << iota
	digit
	upper
	mark      // joins the parts of a name
	edge      // a mark that is trimmed
	telling   // makes a run a name
	multibyte // part of a longer character
)

var class = func() (c [256]uint8) {
	for i := range c {
		switch {
		case i >= utf8.RuneSelf:
			c[i] = multibyte
		case 'a' <= i && i <= 'z':
			c[i] = letter
		case 'A' <= i && i <= 'Z':
			c[i] = letter | upper
		case '0' <= i && i <= '9':
			c[i] = digit | telling
		case i == '_':
			c[i] = mark | telling
		case i == '.', i == '/', i == '-':
			c[i] = mark | edge | telling
		case i == ':', i == '@', i == '#':
			c[i] = mark | edge
		}
	}
	return c
}()

func runEnd(text string, i int) int {
	for i < len(text) {
		switch c := class[text[i]]; {
		case c == 0:
			return i
		case c != multibyte:
			i++
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return i
			}
			i += n
		}
	}
	return i
}

func trim(text string, from, to int) (int, int) {
	for from < to && class[text[from]]&edge != 0 {
		from++
	}
	for from < to && class[text[to-1]]&edge != 0 {
		to--
	}
	return from, to
}

// isEnding reports whether a run is what an apostrophe cuts off a word in
// English: 's, 't, 're, 'll and so on.
func isEnding(text string, from, to int) bool {
	if to-from > 2 || !strings.HasSuffix(text[:from], "'") && !strings.HasSuffix(text[:from], "’") {
		return false
	}
	switch text[from:to] {
	case "s", "t", "d", "m", "re", "ve", "ll":
		return true
	}
	return false
}

// pieces cuts a run at its marks.
func pieces(run string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		from := 0
		for i := 0; i <= len(run); i++ {
			if i < len(run) && class[run[i]]&mark == 0 {
				continue
			}
			if i > from && !yield(run[from:i], from) {
				return
			}
			from = i + 1
		}
	}
}

// eachTerm gives the terms of one run.
func eachTerm(run string, yield func(Term) bool) bool {
	kind := Word
	if isName(run) {
		kind = Part
		if !yield(Term{run, Name, 0, len(run)}) {
			return false
		}
	}
	for piece, at := range pieces(run) {
		if !eachPart(piece, at, kind, yield) {
			return false
		}
	}
	return true
}

// isName reports whether a run counts as a name.
func isName(run string) bool {
	var seen uint8
	for i := 1; i < len(run); i++ {
		seen |= class[run[i]]
	}
	first := class[run[0]]
	all := seen | first
	if all&multibyte == 0 {
		if len(run) < 2 || len(run) > maxName || first&telling == 0 && seen&(telling|upper) == 0 {
			return false
		}
		return len(run) >= 6 || all&^(digit|telling) != 0
	}
	chars, tells, numeric := 0, false, true
	for i, r := range run {
		chars++
		isDigit := unicode.IsDigit(r)
		numeric = numeric && isDigit
		tells = tells || isDigit || r < utf8.RuneSelf && class[r]&telling != 0 || i > 0 && unicode.IsUpper(r)
	}
	return tells && chars >= 2 && chars <= maxName && (chars >= 6 || !numeric)
}

// eachPart gives what stands between two marks, and what that is made of.
func eachPart(piece string, at int, kind Kind, yield func(Term) bool) bool {
	if isUnspaced(piece) {
		return eachPair(piece, at, kind, yield)
	}
	if len(piece) <= maxPart && !yield(Term{normal(piece), kind, at, at + len(piece)}) {
		return false
	}
	var cuts [maxCuts + 1]int
	n := cut(piece, &cuts)
	for i := range n {
		from, to := cuts[i], cuts[i+1]
		if to-from <= maxPart && !yield(Term{normal(piece[from:to]), Part, at + from, at + to}) {
			return false
		}
	}
	return true
}

// cut finds what an identifier without marks is made of: parts begin where
// case rises (parseConfig), before the last capital of several (HTTPServer),
// and where digits begin or end. It gives their number, and their ends behind
// a leading zero; none if there is but one, or so many that the text is a
// digest or the like.
func cut(piece string, cuts *[maxCuts + 1]int) int {
	n := 0
	var before, last rune // the two characters before r
	at := 0               // of last
	for i, r := range piece {
		split := -1
		switch {
		case i == 0:
		case unicode.IsDigit(last) != unicode.IsDigit(r):
			split = i
		case unicode.IsUpper(r) && !unicode.IsUpper(last):
			split = i
		case unicode.IsUpper(last) && unicode.IsUpper(before) && unicode.IsLower(r):
			split = at
		}
		if split > cuts[n] {
			if n == maxCuts-1 {
				return 0
			}
			n++
			cuts[n] = split
		}
		before, last, at = last, r, i
	}
	if n == 0 {
		return 0
	}
	n++
	cuts[n] = len(piece)
	return n
}

// isUnspaced reports whether a piece is of a script that does not put spaces
// between words.
func isUnspaced(piece string) bool {
	for i := 0; i < len(piece); i++ {
		if class[piece[i]] == multibyte {
			for _, r := range piece[i:] {
				if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
					return true
				}
			}
			return false
		}
	}
	return false
}

// eachPair gives each two neighbouring characters, or the only one.
func eachPair(piece string, at int, kind Kind, yield func(Term) bool) bool {
	from := -1
	for i, r := range piece {
		end := i + utf8.RuneLen(r)
		if from >= 0 && !yield(Term{strings.ToLower(piece[from:end]), kind, at + from, at + end}) {
			return false
		}
		if from < 0 && end == len(piece) {
			return yield(Term{strings.ToLower(piece), kind, at, at + end})
		}
		from = i
	}
	return true
}
