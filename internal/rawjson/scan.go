package rawjson

import (
	"encoding/binary"
	"math/bits"
)

func (r *Reader) fail(offset int, text string) {
	if r.err == nil {
		r.err = &Error{Offset: offset, Text: text}
	}
}

func (r *Reader) space() {
	for r.pos < len(r.b) {
		switch r.b[r.pos] {
		case ' ', '\n', '\r', '\t':
			r.pos++
		default:
			return
		}
	}
}

// open consumes an opening bracket.
func (r *Reader) open(bracket byte, want string) bool {
	r.space()
	if r.err != nil {
		return false
	}
	if r.pos >= len(r.b) || r.b[r.pos] != bracket {
		r.fail(r.pos, want)
		return false
	}
	if r.depth == MaxDepth {
		r.fail(r.pos, "nested deeper than 10000 levels")
		return false
	}
	r.depth++
	r.pos++
	return true
}

// closed consumes a closing bracket directly after the opening one.
func (r *Reader) closed(bracket byte) bool {
	r.space()
	if r.pos < len(r.b) && r.b[r.pos] == bracket {
		r.pos++
		r.depth--
		return true
	}
	return false
}

// next consumes the separator after a value in a container and reports
// whether another value follows.
func (r *Reader) next(bracket byte, want string) bool {
	if r.err != nil {
		return false
	}
	r.space()
	if r.pos < len(r.b) {
		switch r.b[r.pos] {
		case ',':
			r.pos++
			return true
		case bracket:
			r.pos++
			r.depth--
			return false
		}
	}
	r.fail(r.pos, want)
	return false
}

// name consumes a field's name and colon and the space before the value.
func (r *Reader) name() []byte {
	r.space()
	if r.pos >= len(r.b) || r.b[r.pos] != '"' {
		r.fail(r.pos, "expected a field name")
		return nil
	}
	start := r.pos
	r.nameAt = start
	flags := r.str()
	if r.err != nil {
		return nil
	}
	key := r.b[start+1 : r.pos-1]
	if flags&hasEscape != 0 {
		key = []byte(decode(key, flags))
	}
	r.space()
	if r.pos >= len(r.b) || r.b[r.pos] != ':' {
		r.fail(r.pos, "expected ':'")
		return nil
	}
	r.pos++
	r.space()
	return key
}

// skip consumes the value at pos, including white space before it.
func (r *Reader) skip() {
	r.space()
	if r.err != nil {
		return
	}
	if r.pos >= len(r.b) {
		r.fail(r.pos, "expected a value, found the end")
		return
	}
	if r.pos == r.gap.Start && r.gap.End > r.pos {
		r.pos = r.gap.End
		return
	}
	switch c := r.b[r.pos]; c {
	case '"':
		r.str()
	case '{':
		if !r.open('{', "") || r.closed('}') {
			return
		}
		for {
			r.name()
			r.skip()
			if !r.next('}', "expected ',' or '}'") {
				return
			}
		}
	case '[':
		if !r.open('[', "") || r.closed(']') {
			return
		}
		for {
			r.skip()
			if !r.next(']', "expected ',' or ']'") {
				return
			}
		}
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			r.number()
			return
		}
		r.fail(r.pos, "expected a value")
	}
}

func (r *Reader) literal(word string) {
	if len(r.b)-r.pos < len(word) || string(r.b[r.pos:r.pos+len(word)]) != word {
		r.fail(r.pos, "expected "+word)
		return
	}
	r.pos += len(word)
}

func (r *Reader) number() {
	if r.b[r.pos] == '-' {
		r.pos++
	}
	if r.pos < len(r.b) && r.b[r.pos] == '0' {
		r.pos++
	} else if !r.digits() {
		return
	}
	if r.pos < len(r.b) && r.b[r.pos] == '.' {
		r.pos++
		if !r.digits() {
			return
		}
	}
	if r.pos < len(r.b) && (r.b[r.pos] == 'e' || r.b[r.pos] == 'E') {
		r.pos++
		if r.pos < len(r.b) && (r.b[r.pos] == '+' || r.b[r.pos] == '-') {
			r.pos++
		}
		r.digits()
	}
}

func (r *Reader) digits() bool {
	start := r.pos
	for r.pos < len(r.b) && '0' <= r.b[r.pos] && r.b[r.pos] <= '9' {
		r.pos++
	}
	if r.pos == start {
		r.fail(r.pos, "expected a digit")
		return false
	}
	return true
}

// What str found in a string besides plain ASCII.
const (
	hasEscape   = 1 << iota // a backslash
	hasNonASCII             // a byte from 0x80 on, possibly invalid UTF-8
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str consumes the string at pos. Most bytes of a request are in strings, so
// it scans eight bytes at a time for the next quote, backslash or control
// character.
func (r *Reader) str() (flags int) {
	b, i := r.b, r.pos+1
	var seen uint64
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^('"'*ones), x^('\\'*ones)
			// In each term the lowest marked byte is a true hit; a borrow can
			// mark only bytes above one.
			hit := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
			if hit != 0 {
				n := bits.TrailingZeros64(hit) / 8
				seen |= x & (1<<(8*n) - 1)
				i += n
				break
			}
			seen |= x
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			seen |= uint64(b[i])
			i++
		}
		if i >= len(b) {
			r.fail(r.pos, "unterminated string")
			return 0
		}
		switch b[i] {
		case '"':
			r.pos = i + 1
			if seen&highs != 0 {
				flags |= hasNonASCII
			}
			return flags
		case '\\':
			flags |= hasEscape
			if i+1 < len(b) && shortEscape[b[i+1]] != 0 {
				i += 2
				continue
			}
			n := unicodeEscape(b[i:])
			if n == 0 {
				r.fail(i, "invalid escape")
				return 0
			}
			i += n
		default:
			r.fail(i, "control character in a string")
			return 0
		}
	}
}

// shortEscape maps the second byte of a two-byte escape to its character; 0
// if the escape is invalid.
var shortEscape = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unicodeEscape is the length of the \u escape at the start of b; 0 if it is
// not one.
func unicodeEscape(b []byte) int {
	if _, ok := hex4(b); ok {
		return 6
	}
	return 0
}

// hex4 reads the four digits of the \u escape at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var n rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}
