package recall

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
)

// token is a term at a place of a text.
type token struct {
	// text is the term: a name as it is written; a word or part in normal form,
	// so that the part "config" of parseConfigs and the word Config are equal.
	text     string
	kind     tokenKind
	from, to int // in the text, in bytes
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
		for run, at := range runs(text) {
			if !analyzeRun(run, func(t token) bool {
				t.from, t.to = t.from+at, t.to+at
				return yield(t)
			}) {
				return
			}
		}
	}
}

// runs returns the runs of a text with their offsets. A run that is too long for
// a name is returned as the parts between its marks.
func runs(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for from, to := lexer.NextRun(text, 0); from < to; from, to = lexer.NextRun(text, to) {
			if isContraction(text, from, to) {
				continue
			}
			run := text[from:to]
			if len(run) <= lexer.MaxName || utf8.RuneCountInString(run) <= lexer.MaxName {
				if !yield(run, from) {
					return
				}
				continue
			}
			for part, at := range lexer.Parts(run) {
				if !yield(part, from+at) {
					return
				}
			}
		}
	}
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
	kind := wordToken
	if lexer.IsName(run) {
		kind = partToken
		if !yield(token{run, nameToken, 0, len(run)}) {
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
	if len(part) <= maxPart && !yield(token{normalize(part), kind, at, at + len(part)}) {
		return false
	}
	var ends [lexer.MaxSubwords + 1]int
	for i := range lexer.Subwords(part, &ends) {
		from, to := ends[i], ends[i+1]
		if to-from <= maxPart && !yield(token{normalize(part[from:to]), partToken, at + from, at + to}) {
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
				if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
					return true
				}
			}
			return false
		}
	}
	return false
}

// bigrams returns each pair of neighboring characters, or the only character.
func bigrams(part string, at int, kind tokenKind, yield func(token) bool) bool {
	from := -1
	for i, r := range part {
		end := i + utf8.RuneLen(r)
		if from >= 0 && !yield(token{strings.ToLower(part[from:end]), kind, at + from, at + end}) {
			return false
		}
		if from < 0 && end == len(part) {
			return yield(token{strings.ToLower(part), kind, at, at + end})
		}
		from = i
	}
	return true
}
