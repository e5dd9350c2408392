package lexer

import "unicode"

// MaxSubwords limits the subwords of one part. What has more is usually a digest.
const MaxSubwords = 8

// Subwords finds the words that an identifier without marks consists of. A word
// begins where case rises (parse|Config), before the last of several capitals
// (HTTP|Server), and where digits begin or end. Subwords writes their ends to
// ends[1:], after a zero, and returns their number: 0 for a single word, and for
// more than MaxSubwords.
func Subwords(part string, ends *[MaxSubwords + 1]int) int {
	n := 0
	var before, last rune // the two characters before r
	at := 0               // of last
	for i, r := range part {
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
		if split > ends[n] {
			if n == MaxSubwords-1 {
				return 0
			}
			n++
			ends[n] = split
		}
		before, last, at = last, r, i
	}
	if n == 0 {
		return 0
	}
	n++
	ends[n] = len(part)
	return n
}
