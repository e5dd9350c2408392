package furl

import (
	"bytes"
	"encoding/json"
	"slices"
)

// canonicalizer writes JSON in one way. It can be used again; what it gave is
// then overwritten.
type canonicalizer struct {
	src      []byte
	at       int
	out      []byte
	fields   []field // of the objects that are being written
	unsorted []byte
}

// canonical gives v without optional space, its object keys sorted, its
// strings escaped in one way and cache marks dropped. Numbers keep their text;
// duplicate keys keep their order. What is not JSON, or nests too deep, is
// returned as it is.
func (c *canonicalizer) canonical(v []byte) []byte {
	c.src, c.at, c.out, c.fields = v, 0, c.out[:0], c.fields[:0]
	if !c.value(0) {
		return v
	}
	c.space()
	if c.at != len(v) {
		return v
	}
	return c.out
}

// maxCanonicalDepth bounds the recursion on hostile input; deeper values
// digest by their bytes.
const maxCanonicalDepth = 512

func (c *canonicalizer) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// next is the next byte that is not space, 0 at the end.
func (c *canonicalizer) next() byte {
	c.space()
	if c.at == len(c.src) {
		return 0
	}
	return c.src[c.at]
}

func (c *canonicalizer) value(depth int) bool {
	if depth > maxCanonicalDepth {
		return false
	}
	switch c.next() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		return c.str()
	}
	return c.literal()
}

func (c *canonicalizer) array(depth int) bool {
	c.out = append(c.out, '[')
	c.at++
	for n := 0; ; n++ {
		if n == 0 && c.next() == ']' {
			break
		}
		if !c.value(depth + 1) {
			return false
		}
		end := c.next()
		if end == ']' {
			break
		}
		if end != ',' {
			return false
		}
		c.out = append(c.out, ',')
		c.at++
	}
	c.at++
	c.out = append(c.out, ']')
	return true
}

// field is one member of an object in the output, key and all.
type field struct{ start, key, end int }

func (c *canonicalizer) object(depth int) bool {
	c.out = append(c.out, '{')
	c.at++
	first, start := len(c.fields), len(c.out)
	for n := 0; ; n++ {
		if n == 0 && c.next() == '}' {
			break
		}
		f := field{start: len(c.out)}
		if c.next() != '"' || !c.str() || c.next() != ':' {
			return false
		}
		f.key = len(c.out)
		c.out = append(c.out, ':')
		c.at++
		if !c.value(depth + 1) {
			return false
		}
		f.end = len(c.out)
		if string(c.out[f.start:f.key]) == `"cache_control"` {
			c.out = c.out[:f.start]
		} else {
			c.fields = append(c.fields, f)
		}
		end := c.next()
		if end == '}' {
			break
		}
		if end != ',' {
			return false
		}
		c.at++
	}
	c.at++
	c.sort(start, c.fields[first:])
	c.fields = c.fields[:first]
	c.out = append(c.out, '}')
	return true
}

// sort puts the fields written since start into order, with commas.
func (c *canonicalizer) sort(start int, fields []field) {
	c.unsorted = append(c.unsorted[:0], c.out[start:]...)
	written := c.unsorted
	slices.SortStableFunc(fields, func(a, b field) int {
		return bytes.Compare(written[a.start-start:a.key-start], written[b.start-start:b.key-start])
	})
	c.out = c.out[:start]
	for i, f := range fields {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[f.start-start:f.end-start]...)
	}
}

// str copies a string; one with escapes is decoded and escaped again.
func (c *canonicalizer) str() bool {
	from := c.at
	escaped := false
	for c.at++; c.at < len(c.src); c.at++ {
		switch c.src[c.at] {
		case '\\':
			escaped = true
			c.at++
		case '"':
			c.at++
			if !escaped {
				c.out = append(c.out, c.src[from:c.at]...)
				return true
			}
			var s string
			if json.Unmarshal(c.src[from:c.at], &s) != nil {
				return false
			}
			c.out = appendQuoted(c.out, s)
			return true
		}
	}
	return false
}

func appendQuoted(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}

// literal copies a number, true, false or null.
func (c *canonicalizer) literal() bool {
	from := c.at
	for c.at < len(c.src) && !bytes.ContainsRune([]byte(" \t\n\r,]}:{[\""), rune(c.src[c.at])) {
		c.at++
	}
	if !json.Valid(c.src[from:c.at]) {
		return false
	}
	c.out = append(c.out, c.src[from:c.at]...)
	return true
}
