package recall

import (
	"strings"
	"unicode"
)

// normal is the form in which words and parts are compared.
func normal(word string) string {
	return stem(lower(word))
}

// lower gives a word in lower case without accents.
func lower(word string) string {
	for i := 0; i < len(word); i++ {
		if c := class[word[i]]; c&upper != 0 || c == multibyte {
			return strings.Map(plain, word)
		}
	}
	return word
}

func plain(r rune) rune {
	r = unicode.ToLower(r)
	if r >= 0xC0 && int(r-0xC0) < len(unaccented) {
		return unaccented[r-0xC0]
	}
	return r
}

// unaccented has the base letters of U+00C0 to U+017F.
var unaccented = []rune("" +
	"aaaaaaæceeeeiiii" + "ðnooooo×ouuuuyþß" +
	"aaaaaaæceeeeiiii" + "ðnooooo÷ouuuuyþy" +
	"aaaaaaccccccccdd" + "ddeeeeeeeeeegggg" +
	"gggghhhhiiiiiiii" + "iiĳĳjjkkĸlllllll" +
	"lllnnnnnnnnnoooo" + "ooœœrrrrrrssssss" +
	"ssttttttuuuuuuuu" + "uuuuwwyyyzzzzzzs")

// stem takes the endings of English inflection off a word in lower case:
// plurals, -ed, -ing and -ly, so that forms of one word are equal. What is
// left need not be a word. Words with other letters than a to z stay as they
// are.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	for i := 0; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	w = plural(w)
	if n := len(w); n >= 6 && strings.HasSuffix(w, "ly") && w[n-3] != 'p' { // apply, supply
		w = w[:n-2]
	}
	if n := len(w); n >= 5 {
		switch {
		case strings.HasSuffix(w, "eed"):
			w = w[:n-1]
		case strings.HasSuffix(w, "ing") && hasVowel(w[:n-3]):
			w = mend(w[:n-3])
		case strings.HasSuffix(w, "ied"):
			w = w[:n-3] + "y"
		case strings.HasSuffix(w, "ed") && hasVowel(w[:n-2]):
			w = mend(w[:n-2])
		}
	}
	return final(w)
}

func plural(w string) string {
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

// mend repairs what is left of a word without -ed or -ing: stopp, mak.
func mend(w string) string {
	n := len(w)
	if n >= 3 && w[n-1] == w[n-2] && strings.IndexByte("bdfgmnprt", w[n-1]) >= 0 {
		return w[:n-1]
	}
	return w
}

// final levels the ends at which forms of one word still differ.
func final(w string) string {
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
