package furl

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// A name has at least minName and at most maxName characters.
const (
	minName = 6
	maxName = 199
)

// Names gives the names in a text in order, repeated as often as they occur:
// what a later message may refer back to, such as identifiers, paths,
// versions, ids and addresses. Each is a piece of the text; nothing is copied.
//
// A name is a maximal run of letters, digits (Unicode's) and _ . / : @ # -
// that has 6 to 199 characters after . / : - # @ are trimmed from both its
// ends, and contains a digit, one of / _ . - or an upper-case letter behind
// its first character. Bytes that are not UTF-8 end a run.
func Names(text string) iter.Seq[string] {
	return func(yield func(string) bool) { eachName(text, yield) }
}

// What a byte can be in a name. Bytes with no class end a run.
const (
	inName    uint8 = 1 << iota // letter, digit or mark
	trimmed                     // a mark that is trimmed at the ends
	telling                     // makes a run a name
	upperCase                   // makes it one if not at the start
	multibyte                   // part of a longer character
)

var nameClass = func() (class [256]uint8) {
	for c := range class {
		switch {
		case c >= utf8.RuneSelf:
			class[c] = multibyte
		case 'a' <= c && c <= 'z':
			class[c] = inName
		case 'A' <= c && c <= 'Z':
			class[c] = inName | upperCase
		case '0' <= c && c <= '9', c == '_':
			class[c] = inName | telling
		case c == '.', c == '/', c == '-':
			class[c] = inName | telling | trimmed
		case c == ':', c == '@', c == '#':
			class[c] = inName | trimmed
		}
	}
	return class
}()

func eachName(text string, yield func(string) bool) {
	for i := 0; i < len(text); {
		end := runEnd(text, i)
		if end == i {
			i++ // inside a character that ends runs, its other bytes do too
			continue
		}
		if name := trimName(text[i:end]); isName(name) && !yield(name) {
			return
		}
		i = end
	}
}

// runEnd is where the run that starts at i ends.
func runEnd(text string, i int) int {
	for i < len(text) {
		switch class := nameClass[text[i]]; {
		case class == 0:
			return i
		case class != multibyte:
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

func trimName(run string) string {
	for run != "" && nameClass[run[0]]&trimmed != 0 {
		run = run[1:]
	}
	for run != "" && nameClass[run[len(run)-1]]&trimmed != 0 {
		run = run[:len(run)-1]
	}
	return run
}

// isName reports whether a trimmed run is long and telling enough.
func isName(run string) bool {
	if len(run) < minName {
		return false // in bytes, so in characters too
	}
	var seen uint8
	for i := 1; i < len(run); i++ {
		seen |= nameClass[run[i]]
	}
	first := nameClass[run[0]]
	if (seen|first)&multibyte == 0 {
		return len(run) <= maxName && (first&telling|seen&(telling|upperCase)) != 0
	}
	chars, tells := 0, false
	for i, r := range run {
		chars++
		if r < utf8.RuneSelf {
			tells = tells || nameClass[r]&telling != 0 || i > 0 && nameClass[r]&upperCase != 0
		} else {
			tells = tells || unicode.IsDigit(r) || i > 0 && unicode.IsUpper(r)
		}
	}
	return tells && minName <= chars && chars <= maxName
}
