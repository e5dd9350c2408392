package recall

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/furlhq/furl/internal/lexer"
)

// token is a term at a place of a text.
type token struct {
	// text is the term: a name as it is written; a word or part in normal form,
	// so that the part "config" of parseConfigs and the word Config are equal.
	text     string
	kind     tokenKind
	from, to int // in the text, in bytes
	// extra says that texts have the term, but queries only as their own run: c in
	// C++, the single characters of a bigram.
	extra bool
	// base says that a query has the term besides its run: render.go of
	// render.go:99.
	base bool
}

type tokenKind uint8

const (
	wordToken tokenKind = iota // a word of prose
	partToken                  // a part of a name
	nameToken                  // an identifier, path, version or the like
)

// term returns the key of the token's term: a name and a word of the same text
// are different terms.
func (t *token) term() term { return term{t.text, t.kind == nameToken} }

type term struct {
	text string
	name bool
}

// maxPart is the length in bytes up to which words and parts are terms.
const maxPart = 64

// analyze returns the tokens of a text in the order in which they begin; a name
// comes before its parts. A name (see package lexer; two characters are enough
// here) gives a token, one for each part between its marks, and one for each
// subword of these: parseConfig gives the parts parseconfig, pars and config.
// Other runs give words. Scripts that are written without spaces give bigrams.
func analyze(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for run := range runs(text) {
			if !analyzeRun(run.text, func(t token) bool {
				t.from, t.to = run.place(&t)
				return yield(t)
			}) {
				return
			}
		}
	}
}

// textRun is a run of a text.
type textRun struct {
	text     string // normalized: NFKC
	from, to int    // in the text, in bytes
}

// place returns the place of a token of the run in the text.
func (r *textRun) place(t *token) (from, to int) {
	if len(r.text) != r.to-r.from {
		return r.from, r.to // normalizing changed the offsets
	}
	return r.from + t.from, r.from + t.to
}

// runs returns the runs of a text, and its emoji, in Unicode's normal form NFKC, in
// which the same text has the same bytes. A run that is too long for a name is
// returned as the parts between its marks.
func runs(text string) iter.Seq[textRun] {
	return func(yield func(textRun) bool) {
		for last := 0; ; {
			from, to := lexer.NextRun(text, last)
			if !emoji(text, last, from, yield) || from == to {
				return
			}
			last = to
			if isContraction(text, from, to) {
				continue
			}
			if suffix := languageSuffix(text, from, to); suffix > 0 {
				last += suffix
				if !yield(textRun{text[from:last], from, last}) {
					return
				}
				continue
			}
			if !splitRun(textRun{normalForm(text[from:to]), from, to}, yield) {
				return
			}
		}
	}
}

// normalForm returns a run in the normal form NFKC.
func normalForm(run string) string {
	for i := range len(run) {
		if run[i] >= utf8.RuneSelf {
			return norm.NFKC.String(run)
		}
	}
	return run
}

// splitRun returns a run, or its parts if it is too long for a name.
func splitRun(run textRun, yield func(textRun) bool) bool {
	if len(run.text) <= lexer.MaxName || utf8.RuneCountInString(run.text) <= lexer.MaxName {
		return yield(run)
	}
	for part, at := range lexer.Parts(run.text) {
		p := textRun{text: part}
		p.from, p.to = run.place(&token{from: at, to: at + len(part)})
		if !yield(p) {
			return false
		}
	}
	return true
}

// emoji returns the emoji of text[from:to], which has no runs. The variants of an
// emoji, such as skin tones, are the same emoji.
func emoji(text string, from, to int, yield func(textRun) bool) bool {
	for i := from; i < to; {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if isEmoji(r) && !yield(textRun{text[i : i+n], i, i + n}) {
			return false
		}
		i += n
	}
	return true
}

// isEmoji reports whether a character is an emoji or a similar symbol: the blocks
// of emoji, and Miscellaneous Symbols and Dingbats with ✓ and ⚠. Box drawing and
// arrows, of which terminal output has many, are not.
func isEmoji(r rune) bool {
	switch {
	case 0x1F000 <= r && r <= 0x1FAFF:
		return r < 0x1F3FB || r > 0x1F3FF // skin tones
	case 0x2600 <= r && r <= 0x27BF, 0x23E9 <= r && r <= 0x23FA:
		return true
	}
	return r == 0x231A || r == 0x231B || r == 0x2B50 || r == 0x2B55
}

// languageSuffix returns the length of the ++ or # with which the name of a
// programming language or compiler ends: C++, C#.
func languageSuffix(text string, from, to int) int {
	suffix, bases := "++", []string{"c", "g", "clang", "libc", "libstdc", "notepad"}
	if strings.HasPrefix(text[to:], "#") {
		suffix, bases = "#", []string{"c", "f", "j", "q"}
	}
	end := to + len(suffix)
	if to-from > len("notepad") || !strings.HasPrefix(text[to:], suffix) || !slices.Contains(bases, lower(text[from:to])) {
		return 0
	}
	if r, _ := utf8.DecodeRuneInString(text[end:]); unicode.IsLetter(r) || suffix == "#" && unicode.IsDigit(r) || r == '_' || r == '+' {
		return 0
	}
	return len(suffix)
}

// isContraction reports whether a run is the end of an English word after an
// apostrophe: 's, 't, 're, 'll and so on.
func isContraction(text string, from, to int) bool {
	if to-from > 2 || !strings.HasSuffix(text[:from], "'") && !strings.HasSuffix(text[:from], "’") {
		return false
	}
	switch text[from:to] {
	case "s", "t", "d", "m", "re", "ve", "ll":
		return true
	}
	return false
}

// analyzeRun returns the tokens of one run.
func analyzeRun(run string, yield func(token) bool) bool {
	if base := strings.TrimRight(run, "+#"); len(base) < len(run) { // see languageSuffix
		return yield(token{text: lower(run), to: len(run)}) && yield(token{text: normalize(base), to: len(base), extra: true})
	}
	kind := wordToken
	if lexer.IsName(run) {
		kind = partToken
		if !yield(token{text: run, kind: nameToken, to: len(run)}) {
			return false
		}
	}
	for part, at := range lexer.Parts(run) {
		if !analyzePart(part, at, kind, yield) {
			return false
		}
	}
	return true
}

// analyzePart returns the tokens of a part between two marks.
func analyzePart(part string, at int, kind tokenKind, yield func(token) bool) bool {
	if isUnspaced(part) {
		return bigrams(part, at, kind, yield)
	}
	if !words(part, kind, at, yield) {
		return false
	}
	var ends [lexer.MaxSubwords + 1]int
	for i := range lexer.Subwords(part, &ends) {
		if !words(part[ends[i]:ends[i+1]], partToken, at+ends[i], yield) {
			return false
		}
	}
	return true
}

// words returns the token of a word or part. A word with umlauts has a second one,
// with the letters that are written instead of them: ae for ä.
func words(word string, kind tokenKind, at int, yield func(token) bool) bool {
	if len(word) > maxPart {
		return true
	}
	t := token{text: normalize(word), kind: kind, from: at, to: at + len(word)}
	if !yield(t) {
		return false
	}
	if spelled := spellOut(word); spelled != "" {
		if t.text = normalize(spelled); !yield(t) {
			return false
		}
	}
	return true
}

// isUnspaced reports whether a part is in a script that does not put spaces
// between words.
func isUnspaced(part string) bool {
	for i := 0; i < len(part); i++ {
		if part[i] >= utf8.RuneSelf {
			for _, r := range part[i:] {
				if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
					return true
				}
			}
			return false
		}
	}
	return false
}

// bigrams returns each character and each pair of neighboring ones. A query has the
// pairs only, unless there is a single character.
func bigrams(part string, at int, kind tokenKind, yield func(token) bool) bool {
	from := -1
	for i, r := range part {
		end := i + utf8.RuneLen(r)
		if from >= 0 && !yield(token{text: lower(part[from:end]), kind: kind, from: at + from, to: at + end}) {
			return false
		}
		alone := from < 0 && end == len(part)
		if (alone || r >= utf8.RuneSelf) && !yield(token{text: lower(part[i:end]), kind: kind, from: at + i, to: at + end, extra: !alone}) {
			return false
		}
		from = i
	}
	return true
}
