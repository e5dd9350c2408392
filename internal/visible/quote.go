package visible

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
	if Line(s) == s {
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
