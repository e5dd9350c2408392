package token

import (
	"unicode"
	"unicode/utf8"
)

// split returns the length of the first piece of a text, which must not be
// empty. The o200k_base encoding defines pieces by a regular expression, with
// alternatives tried in this order:
//
//	word:        one other character, if any (not a letter, digit or line end),
//	             capitals, then small letters, then an English contraction;
//	             at least one small letter, or else at least one capital
//	digits:      one to three
//	punctuation: a space, if any, other characters, then line ends and slashes
//	blank:       up to the last line end in the run; else the run without the
//	             last character, which joins what follows; else the run
//
// Letters without case and combining marks count as both capital and small.
// Each character is examined a bounded number of times.
func split(s string) int {
	r, size := first(s)
	c := classOf(r)
	// A word, possibly after one other character.
	if c&(letter|digits|lineEnd) == 0 {
		if end := word(s, size); end > 0 {
			return end
		}
	}
	if c&letter != 0 {
		if end := word(s, 0); end > 0 {
			return end
		}
	}
	if c&digits != 0 {
		end := size
		for range 2 {
			r, size = first(s[end:])
			if size == 0 || classOf(r)&digits == 0 {
				break
			}
			end += size
		}
		return end
	}
	if end := punctuation(s, c, size); end > 0 {
		return end
	}
	return blank(s)
}

// word returns the end of the word that starts at start, or 0 if there is
// none.
func word(s string, start int) int {
	end := start  // of the capitals
	caseless := 0 // end of the last of them that is also a small letter
	var c class
	for end < len(s) {
		r, size := first(s[end:])
		if c = classOf(r); c&capital == 0 {
			break
		}
		end += size
		if c&small != 0 {
			caseless = end
		}
	}
	switch {
	case end < len(s) && c&small != 0:
		for end < len(s) {
			r, size := first(s[end:])
			if classOf(r)&small == 0 {
				break
			}
			end += size
		}
	case caseless > 0:
		end = caseless
	case end == start:
		return 0
	}
	return end + contraction(s[end:])
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd, in
// either case, at the start of s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	return 0
}

// punctuation returns the end of a run of characters other than letters,
// digits and blanks, after an optional space and including line ends and
// slashes that follow; 0 if there is none. The first character has the class
// c and the given size.
func punctuation(s string, c class, size int) int {
	end := 0
	if s[0] == ' ' {
		end = size
	} else if c&space != 0 {
		return 0
	}
	from := end
	for end < len(s) {
		r, size := first(s[end:])
		// Combining marks do not end the run.
		if c := classOf(r); c&(space|digits) != 0 || c&letter != 0 && c&mark == 0 {
			break
		}
		end += size
	}
	if end == from {
		return 0
	}
	for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
		end++
	}
	return end
}

// blank returns the end of the piece of blanks at the start of s.
func blank(s string) int {
	end, last, lines := 0, 0, 0
	for end < len(s) {
		r, size := first(s[end:])
		c := classOf(r)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if c&lineEnd != 0 {
			lines = end
		}
	}
	switch {
	case lines > 0:
		return lines
	case end == len(s) || last == 0:
		return max(end, 1)
	}
	return last
}

func first(s string) (rune, int) {
	if len(s) > 0 && s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

// class is the set of properties of a character that splitting uses.
type class uint8

const (
	capital class = 1 << iota // allowed among the capitals of a word
	small                     // allowed among its small letters
	mark                      // a combining mark
	digits
	space
	lineEnd

	letter = capital | small
)

var ascii = func() (t [utf8.RuneSelf]class) {
	for r := range t {
		t[r] = slowClassOf(rune(r))
	}
	return t
}()

func classOf(r rune) class {
	if uint32(r) < utf8.RuneSelf {
		return ascii[r]
	}
	return slowClassOf(r)
}

func slowClassOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return space | lineEnd
	case unicode.IsLower(r):
		return small
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return capital
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return capital | small
	case unicode.Is(unicode.M, r):
		return capital | small | mark
	case unicode.Is(unicode.N, r):
		return digits
	case unicode.IsSpace(r):
		return space
	}
	return 0
}
