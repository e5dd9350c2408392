package behaviours

import (
	"regexp"
	"strings"
)

// Surface is something that a document tells people to use, as it is written there.
type Surface struct {
	Text string // "furl show latest --view", "GET /furl/v1/status", "/rolling-context"
	Line int    // from 1
}

// Words splits the text of a command at white space and removes what follows the command
// in a shell, such as a pipe or a comment.
func (s Surface) Words() []string {
	var words []string
	quote := ""
	for word := range strings.FieldsSeq(s.Text) {
		// A quoted argument with spaces is several words here, none of which is a flag.
		if quote != "" {
			if strings.HasSuffix(word, quote) {
				quote = ""
			}
			continue
		}
		if strings.ContainsAny(word[:1], "|<>&;#") || strings.HasPrefix(word, "2>") {
			break
		}
		word, more := strings.CutSuffix(word, ";")
		words = append(words, word)
		if c := word[:1]; (c == "'" || c == `"`) && (len(word) == 1 || !strings.HasSuffix(word, c)) {
			quote = c
		}
		if more {
			break
		}
	}
	return words
}

var (
	span     = regexp.MustCompile("`([^`]+)`")
	endpoint = regexp.MustCompile(`^(?:(?:GET|POST|PUT|DELETE) )?/(?:v1|furl|healthz|readyz|metrics)(?:[/?].*)?$`)
	slash    = regexp.MustCompile(`^/[a-z][a-z-]*(?: .*)?$`)
)

// Spans returns the code spans of a Markdown text and the lines of its code blocks. The
// text of a line has no prompt.
func Spans(doc string) []Surface {
	var found []Surface
	fenced, n := false, 0
	for line := range strings.SplitSeq(doc, "\n") {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if block, indented := strings.CutPrefix(line, "    "); fenced || indented {
			if !indented {
				block = line
			}
			found = append(found, Surface{strings.TrimPrefix(strings.TrimSpace(block), "$ "), n})
			continue
		}
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			found = append(found, Surface{m[1], n})
		}
	}
	return found
}

// IsCommand reports whether the text is a furl command.
func (s Surface) IsCommand() bool { return strings.HasPrefix(s.Text, "furl ") }

// IsEndpoint reports whether the text is a path that the gateway serves, perhaps with its
// method.
func (s Surface) IsEndpoint() bool { return endpoint.MatchString(s.Text) }

// IsSlash reports whether the text is a command that a person types in a chat or an agent,
// such as "/rolling-context on".
func (s Surface) IsSlash() bool { return slash.MatchString(s.Text) && !s.IsEndpoint() }

// IsFlag reports whether the text is a flag.
func (s Surface) IsFlag() bool { return strings.HasPrefix(s.Text, "--") }

// Promises returns the document without the files of its tests, and without its sections
// on gaps: what the document promises. Lines keep their numbers.
func Promises(doc []byte) string {
	lines := strings.Split(string(doc), "\n")
	gaps := false
	for i, line := range lines {
		if strings.HasPrefix(line, "## ") {
			gaps = line == gapsHead
		}
		if gaps {
			lines[i] = ""
		}
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "|") && len(cells) == 5 {
			lines[i] = cells[1] + "|" + cells[2]
		}
	}
	return strings.Join(lines, "\n")
}
