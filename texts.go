package furl

import (
	"encoding/json"
	"iter"
	"strings"
)

// Texts returns the block's text and the strings in a call's arguments
// (JSONStrings).
func (b *Block) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		if b.Text != "" && !yield(b.Text) {
			return
		}
		eachString(string(b.Args), yield)
	}
}

// Texts returns what can be read in a block as shown; see Block.Texts.
func (b *ShownBlock) Texts() iter.Seq[string] {
	switch {
	case b.By == 0:
		return b.Block.Texts()
	case b.Block.Kind == KindCall:
		return JSONStrings(b.Text)
	}
	return func(yield func(string) bool) { yield(b.Text) }
}

// JSONStrings returns the strings in a JSON value in order, decoded, without
// object keys. An invalid string is returned as it is.
func JSONStrings(value string) iter.Seq[string] {
	return func(yield func(string) bool) { eachString(value, yield) }
}

// eachString needs no nesting: a string is a key where a colon follows it.
func eachString(value string, yield func(string) bool) {
	for {
		start := strings.IndexByte(value, '"')
		if start < 0 {
			return
		}
		value = value[start:]
		end := quotedEnd(value)
		quoted := value[:end]
		value = value[end:]
		if !strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), ":") && !yield(unquote(quoted)) {
			return
		}
	}
}

// quotedEnd is the length of the string literal that s begins with, or of s
// when nothing closes it.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

func unquote(quoted string) string {
	if strings.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal([]byte(quoted), &s) == nil {
			return s
		}
	}
	return strings.TrimSuffix(quoted[1:], `"`)
}
