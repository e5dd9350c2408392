package web

import (
	"bytes"
	"strings"
)

// maxDepth is the depth of nesting up to which bodyLines breaks JSON.
const maxDepth = 7

// bodyLines breaks the body of a request into lines to read and to compare: after commas
// and opening brackets, and after newlines in texts. The lines together are the body, byte
// for byte.
func bodyLines(body []byte) []string {
	var lines []string
	text := string(body) // once: the lines share it
	from, depth, inText := 0, 0, false
	end := func(i int) {
		if i > from {
			lines = append(lines, text[from:i])
			from = i
		}
	}
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case inText && c == '\\':
			i++
			if i < len(body) && body[i] == 'n' {
				end(i + 1)
			}
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth <= maxDepth {
				end(i + 1)
			}
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth <= maxDepth, c == '\n':
			end(i + 1)
		}
	}
	end(len(body))
	return lines
}

// maxShown is the length of the longest line that a comparison shows whole, in bytes.
const maxShown = 4000

// joined returns lines as a text for a diff. A newline at the end of a line is shown as a
// sign.
func joined(lines []string) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(strings.ReplaceAll(l, "\n", "⏎"))
		b.WriteByte('\n')
	}
	return b.Bytes()
}
