package lexer

import (
	"strings"
	"unicode"
)

// Fold trims a text and replaces each run of white space in it, line breaks
// included, with one space. It copies only texts that it has to change.
func Fold(text string) string {
	text = strings.TrimSpace(text)
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			if space || r != ' ' {
				return strings.Join(strings.Fields(text), " ")
			}
			space = true
		} else {
			space = false
		}
	}
	return text
}
