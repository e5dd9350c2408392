package rawjson

import (
	"bytes"
	"hash/maphash"
)

var seed = maphash.MakeSeed()

// Sum returns a hash of a value's bytes, to compare values that one process has seen.
func Sum(value []byte) uint64 { return maphash.Bytes(seed, value) }

// CountValues returns the number of objects, arrays, fields and elements in a
// JSON text, or slightly more. It does not allocate or check the text.
func CountValues(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '{', '[':
			n++
		case '"':
			i = endOfString(text, i+1)
		}
	}
	return n
}

// endOfString returns the offset of the quote that ends a JSON string, or the
// end of the text.
func endOfString(text []byte, start int) int {
	for at := start; ; {
		quote := bytes.IndexByte(text[at:], '"')
		if quote < 0 {
			return len(text)
		}
		at += quote
		escapes := 0
		for at-escapes > start && text[at-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		at++
	}
}
