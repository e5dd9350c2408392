package agents

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ShellQuote quotes a word for a POSIX shell.
func ShellQuote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoteJSON returns a string as JSON, without escapes for HTML.
func quoteJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string has no error
	return strings.TrimSuffix(b.String(), "\n")
}

// Resolve returns the value of a setting for a gateway's address and the command of
// furl's MCP server.
func (s Setting) Resolve(address string, command []string) string {
	var args []string
	for _, arg := range command[1:] {
		args = append(args, quoteJSON(arg))
	}
	v := strings.ReplaceAll(s.Value, `"{args}"`, strings.Join(args, ", "))
	v = strings.ReplaceAll(v, `"{command}"`, quoteJSON(command[0]))
	v = strings.ReplaceAll(v, `"{status}"`, quoteJSON(StatusCommand(command[0])))
	return strings.ReplaceAll(v, "{url}", strings.Trim(quoteJSON(address), `"`))
}

// StatusCommand is the command of Claude Code's status line.
func StatusCommand(program string) string { return ShellQuote(program) + " status --format claude" }
