package tui

import "strings"

// fence follows the lines of a Markdown text and knows whether they are in a fenced code
// block.
type fence struct{ mark string }

// in reports whether the next line is in a code block.
func (f *fence) in() bool { return f.mark != "" }

// next reads a line.
func (f *fence) next(line string) {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		mark := line[:len(line)-len(rest)]
		if len(mark) < 3 {
			continue
		}
		switch {
		case f.mark == "" && (c == "~" || !strings.Contains(rest, "`")):
			f.mark = mark
		case strings.HasPrefix(mark, f.mark) && f.mark != "" && rest == "":
			f.mark = ""
		}
		return
	}
}

// paragraphs splits a Markdown text that arrives in pieces. A paragraph ends with an
// empty line, if the line after it is not indented: an indented one continues a list
// item. Fenced code blocks are not cut.
type paragraphs struct {
	rest  string // the text after the finished paragraphs
	fence fence  // at the line that starts at line
	line  int    // the start of the first line in rest that is not complete
	ended int    // the end of the last paragraph in rest that may be finished, 0 for none
}

// add appends text and returns the paragraphs that it finishes.
func (p *paragraphs) add(text string) []string {
	var done []string
	p.rest += text
	for {
		if p.ended > 0 && p.line < len(p.rest) {
			switch c := p.rest[p.line]; {
			case c == ' ' || c == '\t':
				if strings.TrimLeft(p.rest[p.line:], " \t\r") == "" {
					return done // it may be another empty line
				}
				if strings.TrimSpace(firstLine(p.rest[p.line:])) != "" {
					p.ended = 0
				}
			case c != '\n' && c != '\r':
				done = append(done, p.rest[:p.ended])
				p.rest = p.rest[p.line:]
				p.line, p.ended = 0, 0
			}
		}
		end := strings.IndexByte(p.rest[p.line:], '\n')
		if end < 0 {
			return done
		}
		line := p.rest[p.line : p.line+end]
		if strings.TrimSpace(line) == "" && !p.fence.in() {
			if p.ended == 0 && strings.TrimSpace(p.rest[:p.line]) != "" {
				p.ended = p.line
			}
		} else {
			p.fence.next(line)
		}
		p.line += end + 1
	}
}

// end returns the rest of the text and starts anew.
func (p *paragraphs) end() string {
	rest := p.rest
	*p = paragraphs{}
	return rest
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
