package cmdline

import (
	"fmt"
	"strings"
)

// QuoteArg quotes an argument for a shell.
func QuoteArg(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%", r))
	}) < 0
	if plain && s != "" {
		return s
	}
	if Label(s) == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder // $'…' has escapes for characters that must not reach a terminal
	for _, c := range []byte(s) {
		switch {
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

// QuoteFlag is quoteArg for an argument that may be a flag.
func QuoteFlag(arg string) string {
	if strings.HasPrefix(arg, "-") {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return arg
		}
		return name + "=" + QuoteArg(value)
	}
	return QuoteArg(arg)
}
