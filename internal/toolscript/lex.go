package toolscript

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenName tokenKind = iota // also keywords
	tokenString
	tokenTemplate
	tokenNumber
	tokenPattern // a regular expression
	tokenMark    // an operator or a bracket
)

// token is a token of JavaScript.
type token struct {
	kind tokenKind
	// text is a name, a number or a mark as written, a string decoded.
	text string
	// match is where the bracket is closed that the token opens: an index, the number of
	// tokens if nothing closes it.
	match int
	// parts are the texts of a template, one more than there are inserts.
	parts   []part
	inserts [][]token
}

// part is a text between the inserts of a template.
type part struct{ raw, text string }

func (t *token) is(mark string) bool { return t.kind == tokenMark && t.text == mark }

func (t *token) isName(name string) bool { return t.kind == tokenName && t.text == name }

// lexer splits a source into tokens. Of an invalid source it makes what it can.
type lexer struct {
	source string
	at     int
	count  int  // tokens so far
	broken bool // a string, template, comment or bracket does not end
}

// maxTokens is how many tokens of a source are read.
const maxTokens = 100_000

// maxNested is how deep templates may be nested.
const maxNested = 20

// tokens reads to the end, or in an insert of a template to the brace that closes it.
func (l *lexer) tokens(depth int) []token {
	var list []token
	var open []int
	for {
		l.skipSpace()
		if l.at >= len(l.source) {
			break
		}
		if l.count++; l.count > maxTokens {
			l.at, l.broken = len(l.source), true
			break
		}
		t := l.next(list, depth)
		switch {
		case t.kind != tokenMark:
		case t.text == "(" || t.text == "[" || t.text == "{":
			open = append(open, len(list))
		case t.text == ")" || t.text == "]" || t.text == "}":
			if depth > 0 && t.text == "}" && len(open) == 0 {
				return list
			}
			if n := len(open); n > 0 && closes(list[open[n-1]].text, t.text) {
				list[open[n-1]].match = len(list)
				open = open[:n-1]
			} else {
				l.broken = true
			}
		}
		list = append(list, t)
	}
	for _, i := range open {
		list[i].match = len(list)
	}
	l.broken = l.broken || len(open) > 0 || depth > 0
	return list
}

func closes(open, mark string) bool {
	return open == "(" && mark == ")" || open == "[" && mark == "]" || open == "{" && mark == "}"
}

func (l *lexer) skipSpace() {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\v\f", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "//"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.at += n
			} else {
				l.at = len(l.source)
			}
		case strings.HasPrefix(rest, "/*"):
			if n := strings.Index(rest[2:], "*/"); n >= 0 {
				l.at += n + 4
			} else {
				l.at, l.broken = len(l.source), true
			}
		default:
			return
		}
	}
}

func (l *lexer) next(before []token, depth int) token {
	c := l.source[l.at]
	switch {
	case c == '"' || c == '\'':
		return token{kind: tokenString, text: l.quoted(c)}
	case c == '`':
		return l.template(depth)
	case '0' <= c && c <= '9':
		return token{kind: tokenNumber, text: l.run(func(c byte) bool { return isNameByte(c) || c == '.' })}
	case isNameByte(c):
		return token{kind: tokenName, text: l.run(isNameByte)}
	case c == '/' && !endsOperand(before):
		l.pattern()
		return token{kind: tokenPattern}
	}
	for _, mark := range marks {
		if strings.HasPrefix(l.source[l.at:], mark) {
			l.at += len(mark)
			return token{kind: tokenMark, text: mark}
		}
	}
	l.at++
	return token{kind: tokenMark, text: l.source[l.at-1 : l.at]}
}

// marks are those of several characters, longest first.
var marks = [...]string{">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "**"}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

func (l *lexer) run(in func(byte) bool) string {
	start := l.at
	for l.at < len(l.source) && in(l.source[l.at]) {
		l.at++
	}
	return l.source[start:l.at]
}

// operators are the keywords after which an operand follows.
var operators = map[string]bool{"return": true, "typeof": true, "case": true, "in": true, "of": true, "delete": true, "void": true,
	"throw": true, "new": true, "await": true, "yield": true, "else": true, "do": true, "instanceof": true}

// endsOperand reports whether a slash after these tokens divides.
func endsOperand(before []token) bool {
	if len(before) == 0 {
		return false
	}
	switch t := &before[len(before)-1]; t.kind {
	case tokenMark:
		return t.text == ")" || t.text == "]" || t.text == "}"
	case tokenName:
		return !operators[t.text]
	}
	return true
}

// pattern skips a regular expression, which is in one line.
func (l *lexer) pattern() {
	class := false
	for l.at++; l.at < len(l.source); l.at++ {
		switch c := l.source[l.at]; {
		case c == '\n':
			return
		case c == '\\':
			l.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.at++
			l.run(isNameByte)
			return
		}
	}
	l.at = len(l.source)
}

// quoted reads a string, which is in one line.
func (l *lexer) quoted(quote byte) string {
	l.at++
	start := l.at
	for l.at < len(l.source) {
		switch c := l.source[l.at]; {
		case c == quote:
			l.at++
			return unescape(l.source[start : l.at-1])
		case c == '\n':
			l.broken = true
			return unescape(l.source[start:l.at])
		case c == '\\' && strings.HasPrefix(l.source[l.at:], "\\\r\n"):
			l.at += 3
		case c == '\\':
			l.at += 2
		default:
			l.at++
		}
	}
	l.at, l.broken = len(l.source), true
	return unescape(l.source[start:])
}

func (l *lexer) template(depth int) token {
	t := token{kind: tokenTemplate}
	l.at++
	start := l.at
	add := func(end int) {
		raw := strings.ReplaceAll(l.source[start:end], "\r\n", "\n")
		t.parts = append(t.parts, part{raw: raw, text: unescape(raw)})
	}
	for l.at < len(l.source) {
		switch c := l.source[l.at]; {
		case c == '`':
			add(l.at)
			l.at++
			return t
		case c == '\\':
			l.at += 2
		case c == '$' && strings.HasPrefix(l.source[l.at:], "${"):
			add(l.at)
			l.at += 2
			if depth == maxNested {
				l.at = len(l.source)
			}
			t.inserts = append(t.inserts, l.tokens(depth+1))
			start = l.at
		default:
			l.at++
		}
	}
	l.at, l.broken = len(l.source), true
	add(l.at)
	return t
}

// unescape decodes the escapes of a string. A part that is no valid escape stays
// as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'v':
			out = append(out, '\v')
		case '0':
			out = append(out, 0)
		case '\n': // a line goes on
		case '\r':
			if i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
		case 'x', 'u':
			r, n := hexEscape(s[i:])
			if n == 0 {
				out = append(out, c)
				continue
			}
			i += n - 1
			if low, m := hexEscape(strings.TrimPrefix(s[i+1:], `\`)); utf16.IsSurrogate(r) && m > 0 && s[i+1] == '\\' {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					r = pair
					i += m + 1
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// hexEscape reads x41, u0041 or u{41} and returns its length, 0 if it is none of
// them.
func hexEscape(s string) (r rune, length int) {
	digits := 0
	switch {
	case strings.HasPrefix(s, "u{"):
		end := strings.IndexByte(s, '}')
		if end < 3 || end > 8 {
			return 0, 0
		}
		r, ok := hexadecimal(s[2:end])
		if !ok {
			return 0, 0
		}
		return r, end + 1
	case strings.HasPrefix(s, "u"):
		digits = 4
	case strings.HasPrefix(s, "x"):
		digits = 2
	}
	if digits == 0 || len(s) <= digits {
		return 0, 0
	}
	r, ok := hexadecimal(s[1 : 1+digits])
	if !ok {
		return 0, 0
	}
	return r, 1 + digits
}

func hexadecimal(s string) (r rune, ok bool) {
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
