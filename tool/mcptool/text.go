package mcptool

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean returns a text of the server for an error or a note: of at most limit bytes,
// on one line, with control characters escaped, and without the values of Env and
// Header.
func (c *Client) clean(text string, limit int) string {
	for _, secret := range c.secrets() {
		text = strings.ReplaceAll(text, secret, "(hidden)")
	}
	return escape(strings.Join(strings.FieldsFunc(cut(text, limit), func(r rune) bool { return r == '\n' || r == '\r' }), " | "), "")
}

// secrets returns the values that errors must not show, longest first.
func (c *Client) secrets() []string {
	var list []string
	add := func(value string) {
		if len(value) >= 6 { // shorter values are settings such as "true", and part of other words
			list = append(list, value)
		}
	}
	for _, value := range c.s.Env {
		add(value)
	}
	for _, values := range c.s.Header {
		for _, value := range values {
			add(value)
			if _, key, ok := strings.Cut(value, " "); ok { // Bearer KEY
				add(key)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// cut returns the first bytes of a text, at most limit of them.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// escape spells out the characters that are not printable, except those in keep.
func escape(text, keep string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%x}", r)
		}
	}
	return b.String()
}
