package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalize returns the form in which words and parts are indexed: lower case,
// without accents, stemmed.
func normalize(word string) string {
	return stem(lower(word))
}

// lower returns a word in lower case, without the accents of Latin and Greek letters.
// Letters that are also written as two become these: ss for ß.
func lower(word string) string {
	for i := 0; i < len(word); i++ {
		if word[i] >= utf8.RuneSelf {
			return lowerUnicode(word)
		}
		if c := word[i]; 'A' <= c && c <= 'Z' {
			return lowerASCII(word, i)
		}
	}
	return word
}

// lowerASCII is lower for a word whose first i bytes are in lower case.
func lowerASCII(word string, i int) string {
	buf := []byte(word)
	for ; i < len(buf); i++ {
		switch c := buf[i]; {
		case c >= utf8.RuneSelf:
			return lowerUnicode(word)
		case 'A' <= c && c <= 'Z':
			buf[i] = c + 'a' - 'A'
		}
	}
	return string(buf)
}

func lowerUnicode(word string) string {
	buf := make([]byte, 0, len(word)+8)
	for _, r := range word {
		r = unicode.ToLower(r)
		switch {
		case r < 0xC0:
			buf = utf8.AppendRune(buf, r)
		case r == 'ß':
			buf = append(buf, "ss"...)
		case r == 'æ':
			buf = append(buf, "ae"...)
		case r == 'œ':
			buf = append(buf, "oe"...)
		case int(r-0xC0) < len(unaccented):
			buf = utf8.AppendRune(buf, unaccented[r-0xC0])
		case r == 'ё':
			buf = utf8.AppendRune(buf, 'е')
		case 0x300 <= r && r <= 0x36F: // combining accents
		case unicode.In(r, unicode.Latin, unicode.Greek):
			buf = utf8.AppendRune(buf, baseLetter(r))
		default:
			buf = utf8.AppendRune(buf, r)
		}
	}
	return string(buf)
}

// baseLetter returns a letter without its accents.
func baseLetter(r rune) rune {
	if d := norm.NFD.PropertiesString(string(r)).Decomposition(); len(d) > 0 {
		r, _ = utf8.DecodeRune(d)
	}
	if r == 'ς' { // at the end of a word
		return 'σ'
	}
	return r
}

// spelledOut has the letters that are written for others where these are missing.
var spelledOut = map[rune]string{'ä': "ae", 'ö': "oe", 'ü': "ue", 'å': "aa", 'ø': "oe"}

// spellOut returns a word with such letters in the other spelling; "" if it has none.
func spellOut(word string) string {
	for i := 0; i < len(word); i++ {
		if word[i] < utf8.RuneSelf {
			continue
		}
		var out strings.Builder
		found := false
		for _, r := range word {
			if s, ok := spelledOut[unicode.ToLower(r)]; ok {
				out.WriteString(s)
				found = true
			} else {
				out.WriteRune(r)
			}
		}
		if found {
			return out.String()
		}
		break
	}
	return ""
}

// unaccented has the base letters of U+00C0 to U+017F.
var unaccented = []rune("" +
	"aaaaaaæceeeeiiii" + "ðnooooo×ouuuuyþß" +
	"aaaaaaæceeeeiiii" + "ðnooooo÷ouuuuyþy" +
	"aaaaaaccccccccdd" + "ddeeeeeeeeeegggg" +
	"gggghhhhiiiiiiii" + "iiĳĳjjkkĸlllllll" +
	"lllnnnnnnnnnoooo" + "ooœœrrrrrrssssss" +
	"ssttttttuuuuuuuu" + "uuuuwwyyyzzzzzzs")

// stem removes English inflections from a word in lower case: plurals, -ed, -ing
// and -ly, so that forms of one word are equal. The stem need not be a word. A
// word with other letters than a to z is its own stem.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	for i := 0; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	w = singular(w)
	if n := len(w); n >= 6 && strings.HasSuffix(w, "ly") && w[n-3] != 'p' { // apply, supply
		w = w[:n-2]
	}
	if n := len(w); n >= 5 {
		switch {
		case strings.HasSuffix(w, "eed"):
			w = w[:n-1]
		case strings.HasSuffix(w, "ing") && hasVowel(w[:n-3]):
			w = restoreStem(w[:n-3])
		case strings.HasSuffix(w, "ied"):
			w = w[:n-3] + "y"
		case strings.HasSuffix(w, "ed") && hasVowel(w[:n-2]):
			w = restoreStem(w[:n-2])
		}
	}
	return unifyEnd(w)
}

func singular(w string) string {
	n := len(w)
	switch {
	case strings.HasSuffix(w, "sses"):
		return w[:n-2]
	case strings.HasSuffix(w, "ies") && n > 4:
		return w[:n-3] + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		return w[:n-2]
	case w[n-1] == 's':
		return w[:n-1]
	}
	return w
}

// restoreStem removes the doubled consonant of a word without -ed or -ing: stopp.
func restoreStem(w string) string {
	n := len(w)
	if n >= 3 && w[n-1] == w[n-2] && strings.IndexByte("bdfgmnprt", w[n-1]) >= 0 {
		return w[:n-1]
	}
	return w
}

// unifyEnd makes the ends equal in which forms of one word still differ.
func unifyEnd(w string) string {
	n := len(w)
	switch {
	case n > 3 && w[n-1] == 'e':
		return w[:n-1]
	case n > 3 && w[n-1] == 'y' && !isVowel(w[n-2]):
		return w[:n-1] + "i"
	}
	return w
}

func hasVowel(w string) bool {
	for i := 0; i < len(w); i++ {
		if isVowel(w[i]) || i > 0 && w[i] == 'y' {
			return len(w) >= 2
		}
	}
	return false
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
