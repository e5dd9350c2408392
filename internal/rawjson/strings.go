package rawjson

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a valid JSON string, including its quotes. Lone surrogates
// and each byte of invalid UTF-8 become U+FFFD. It returns "" for other
// values.
func Unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return decode(raw[1:len(raw)-1], hasEscape|hasNonASCII)
}

// decode decodes the inside of a valid string.
func decode(s []byte, flags int) string {
	broken := flags&hasNonASCII != 0 && !utf8.Valid(s)
	if flags&hasEscape == 0 && !broken {
		return string(s)
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			n = len(s)
		}
		if broken {
			writeValid(&out, s[:n])
		} else {
			out.Write(s[:n])
		}
		if s = s[n:]; len(s) > 0 {
			s = s[writeEscape(&out, s):]
		}
	}
	return out.String()
}

// writeEscape decodes the escape at the start of s and returns its length.
func writeEscape(out *strings.Builder, s []byte) int {
	if len(s) < 2 {
		return len(s) // not in a valid string
	}
	if c := shortEscape[s[1]]; c != 0 {
		out.WriteByte(c)
		return 2
	}
	first, ok := hex4(s)
	if !ok {
		return len(s) // not in a valid string
	}
	if utf16.IsSurrogate(first) {
		if second, ok := hex4(s[6:]); ok {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				out.WriteRune(pair)
				return 12
			}
		}
	}
	out.WriteRune(first) // U+FFFD for a surrogate
	return 6
}

func writeValid(out *strings.Builder, s []byte) {
	for len(s) > 0 {
		c, n := utf8.DecodeRune(s)
		out.WriteRune(c)
		s = s[n:]
	}
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. It escapes only what JSON
// requires: the quote, the backslash and control characters; not HTML.
// Invalid UTF-8 becomes U+FFFD. Equal strings give equal bytes.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+len(s)/16+2), '"') // some characters are escaped
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			ch, n := utf8.DecodeRuneInString(s[i:])
			if ch == utf8.RuneError && n == 1 {
				dst = append(dst, s[from:i]...)
				dst = append(dst, "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
