package record

import (
	"bytes"
	"encoding/json"
	"strings"
	"unsafe"
)

// What an encoded message needs of its blocks is mostly in the body already:
// the words of a block are a string there. So a text is stored as a reference
// to the bytes it was decoded from, and as itself only where none are found.
const (
	textNone    = iota // no text
	textInline         // follows
	textPlain          // offset and length in the body, as it is
	textEscaped        // offset and length in the body, with JSON's escapes
)

// find looks for a text in a part of raw: as it is, or as the string literal
// that decodes to it.
func find(s string, raw []byte, start, end int) (kind byte, from, to int, ok bool) {
	rest := raw[start:end]
	if i := bytes.Index(rest, unsafe.Slice(unsafe.StringData(s), len(s))); i >= 0 {
		return textPlain, start + i, start + i + len(s), true
	}
	for at := start; ; {
		quote := bytes.IndexByte(raw[at:end], '"')
		if quote < 0 {
			return 0, 0, 0, false
		}
		from := at + quote
		literal := raw[from:end]
		to := from + literalEnd(literal)
		at = to
		// A literal is at least as long as what it decodes to, and at most
		// six times as long, but for bytes that are no UTF-8.
		if n := to - from - 2; n < len(s) || n > 6*len(s) {
			continue
		}
		if decoded, err := literalText(raw[from:to]); err == nil && decoded == s {
			return textEscaped, from, to, true
		}
	}
}

// literalEnd is the length of the string literal that b begins with, or of b
// if the literal is not closed.
func literalEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// literalText decodes a JSON string literal.
func literalText(literal []byte) (s string, err error) {
	if t, ok := simpleText(literal); ok {
		return t, nil
	}
	err = json.Unmarshal(literal, &s)
	return s, err
}

// simpleText decodes the escapes that transcripts are full of; false where a
// literal has others or is none.
func simpleText(literal []byte) (string, bool) {
	if len(literal) < 2 || literal[0] != '"' || literal[len(literal)-1] != '"' {
		return "", false
	}
	in := literal[1 : len(literal)-1]
	var out strings.Builder
	out.Grow(len(in))
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			out.Write(in)
			return out.String(), true
		}
		if i+1 == len(in) {
			return "", false
		}
		out.Write(in[:i])
		switch in[i+1] {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case '"', '\\', '/':
			out.WriteByte(in[i+1])
		default:
			return "", false
		}
		in = in[i+2:]
	}
}
