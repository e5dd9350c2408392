// Package lexer finds identifiers in text: names of functions and files, paths,
// versions, ids and addresses. Search, policies and measurements all use it, so
// that they agree on what a name is.
//
// A run is a maximal sequence of letters with their accents and digits (Unicode's)
// and the marks _ . / : @ # - without . / : - # @ at its ends. Bytes that are not UTF-8 end a
// run. A run is a name if it contains a digit, one of / _ . - or an upper-case
// letter after its first character, and has at most 199 characters.
package lexer

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// MaxName is the length of the longest name, in characters.
const MaxName = 199

// minName is the length of the shortest name that Names returns, in characters.
const minName = 6

// Names returns the names of at least 6 characters in a text, in order and as
// often as they occur. Each is a piece of the text; nothing is copied.
func Names(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for from, to := NextRun(text, 0); from < to; from, to = NextRun(text, to) {
			if run := text[from:to]; len(run) >= minName && isName(run, minName) && !yield(run) {
				return
			}
		}
	}
}

// IsName reports whether a run is a name of at least 2 characters. A number
// alone needs 6 digits.
func IsName(run string) bool { return isName(run, 2) }

// NextRun returns the first run that begins at byte i of the text or later, as
// text[from:to]. If there is none, from equals to.
func NextRun(text string, i int) (from, to int) {
	for i < len(text) {
		end := runEnd(text, i)
		if end == i {
			i++ // the other bytes of a longer character end runs too
			continue
		}
		from, to := i, end
		for from < to && class[text[from]]&trimmed != 0 {
			from++
		}
		for from < to && class[text[to-1]]&trimmed != 0 {
			to--
		}
		if from < to {
			return from, to
		}
		i = end
	}
	return len(text), len(text)
}

// Parts returns the pieces of a run between its marks, with their offsets.
func Parts(run string) iter.Seq2[string, int] {
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

// What a byte can be in a run. Bytes with no class end a run.
const (
	letter    uint8 = 1 << iota
	digit           // ASCII
	upper           // upper-case letter: makes a run a name if not at the start
	mark            // joins the parts of a name
	trimmed         // a mark that is removed at the ends of a run
	telling         // makes a run a name
	multibyte       // part of a longer character
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
			c[i] = mark | trimmed | telling
		case i == ':', i == '@', i == '#':
			c[i] = mark | trimmed
		}
	}
	return c
}()

// runEnd returns where the run that starts at i ends, before it is trimmed.
func runEnd(text string, i int) int {
	for start := i; i < len(text); {
		switch c := class[text[i]]; {
		case c == 0:
			return i
		case c != multibyte:
			i++
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !(unicode.IsMark(r) && afterLetter(text[start:i])) {
				return i
			}
			i += n
		}
	}
	return i
}

// afterLetter reports whether a combining mark may follow a text: it ends with a
// letter, or with a letter and its other marks.
func afterLetter(text string) bool {
	for {
		r, n := utf8.DecodeLastRuneInString(text)
		if !unicode.IsMark(r) {
			return unicode.IsLetter(r)
		}
		text = text[:len(text)-n]
	}
}

// isName reports whether a run is a name of at least so many characters, which
// must be 2 or more. Numbers need minName digits.
func isName(run string, least int) bool {
	if len(run) < least {
		return false // in bytes, so in characters too
	}
	var seen uint8
	for i := 1; i < len(run); i++ {
		seen |= class[run[i]]
	}
	first := class[run[0]]
	all := first | seen
	if all&multibyte == 0 {
		if len(run) > MaxName || first&telling == 0 && seen&(telling|upper) == 0 {
			return false
		}
		return len(run) >= minName || all&^(digit|telling) != 0
	}
	chars, tells, numeric := 0, false, true
	for i, r := range run {
		chars++
		isDigit := unicode.IsDigit(r)
		numeric = numeric && isDigit
		tells = tells || isDigit || r < utf8.RuneSelf && class[r]&telling != 0 || i > 0 && unicode.IsUpper(r)
	}
	return tells && least <= chars && chars <= MaxName && (chars >= minName || !numeric)
}
