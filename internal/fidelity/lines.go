package fidelity

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
)

// minLine is the minimum number of characters of a folded line.
const minLine = 30

// Variants gives the folded lines of a text that count, each with what remains
// of it, if that still counts, when what tools put before a line is taken
// away, one of these at a time and at most three times in a row:
//
//   - the number of a line, with or without an L before it, followed by one of
//     → : | │ - or a space: "12→", "12: ", "00012| ", "L12:", "12 ";
//   - the file of a line and its number: "path:12:", "path-12-";
//   - the file alone, if it looks like one (has a dot or a slash): "path:";
//   - the sign of a line in a patch or a comparison: + - < >.
//
// Each of them may be followed by a space.
func Variants(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = lexer.Fold(line)
			for range 4 {
				if !counts(line) {
					break
				}
				if !yield(line) {
					return
				}
				rest, ok := cutPrefix(line)
				if !ok {
					break
				}
				line = rest
			}
		}
	}
}

// quotes yields the folded lines of a reply's text that are long enough, each
// with the same line without a patch's sign, if it has one.
func quotes(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			if line = lexer.Fold(line); !counts(line) {
				continue
			}
			bare := ""
			if line[0] == '+' || line[0] == '-' {
				if bare = strings.TrimPrefix(line[1:], " "); !counts(bare) {
					bare = ""
				}
			}
			if !yield(line, bare) {
				return
			}
		}
	}
}

func counts(line string) bool {
	return len(line) >= minLine && utf8.RuneCountInString(line) >= minLine
}

// cutPrefix removes the first of the prefixes above that a line has.
func cutPrefix(line string) (string, bool) {
	if rest, ok := cutNumber(line); ok {
		return rest, true
	}
	if rest, ok := cutFile(line); ok {
		return rest, true
	}
	if strings.IndexByte("+-<>", line[0]) >= 0 {
		return strings.TrimPrefix(line[1:], " "), true
	}
	return "", false
}

func cutNumber(line string) (string, bool) {
	n := digits(strings.TrimPrefix(line, "L"))
	if n == 0 {
		return "", false
	}
	rest := strings.TrimPrefix(line, "L")[n:]
	spaced := strings.TrimPrefix(rest, " ")
	for _, mark := range [...]string{"→", ":", "|", "│", "-"} {
		if after, ok := strings.CutPrefix(spaced, mark); ok {
			return strings.TrimPrefix(after, " "), true
		}
	}
	return spaced, spaced != rest && line[0] != 'L'
}

func cutFile(line string) (string, bool) {
	word, _, _ := strings.Cut(line, " ")
	for i := 1; i < len(word); i++ {
		if c := word[i]; c == ':' || c == '-' {
			n := digits(word[i+1:])
			if end := i + 1 + n; n > 0 && end < len(line) && line[end] == c {
				return strings.TrimPrefix(line[end+1:], " "), true
			}
		}
	}
	file, _, ok := strings.Cut(word, ":")
	if !ok || !strings.ContainsAny(file, "./") {
		return "", false
	}
	return strings.TrimPrefix(line[len(file)+1:], " "), true
}

// digits is the length of the number at the start of s, if it could be a line
// number.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n > 9 {
		return 0
	}
	return n
}
