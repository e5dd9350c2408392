package chat

import "strings"

// IsCommand reports whether a line is a slash command: a slash, a name of letters and
// hyphens, and the end or a space. A path such as /usr/bin is none.
func IsCommand(line string) bool {
	name, _ := Split(line)
	return name != ""
}

// Split returns the name and the arguments of a slash command, "" if the line is none.
func Split(line string) (name, args string) {
	line = strings.TrimSpace(line)
	rest, ok := strings.CutPrefix(line, "/")
	if !ok {
		return "", ""
	}
	name, args, _ = strings.Cut(rest, " ")
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" || strings.Trim(name, "-") == "" {
		return "", ""
	}
	return name, strings.TrimSpace(args)
}
