package agents

import "strings"

// OwnID returns the part of an agent's session id to compare with what a person
// types. The id of a sub-agent is its parent's id, a slash and its own: only the last
// is compared, unless the person typed a slash. Likewise kimi-code's "session_" may
// be left out.
func OwnID(id, typed string) string {
	if i := strings.LastIndexByte(id, '/'); i >= 0 && !strings.Contains(typed, "/") {
		id = id[i+1:]
	}
	const prefix = "session_"
	if !strings.HasPrefix(typed, prefix[:min(len(prefix), len(typed))]) {
		id = strings.TrimPrefix(id, prefix)
	}
	return id
}
