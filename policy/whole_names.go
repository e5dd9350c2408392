package policy

import (
	"iter"
	"strings"

	"github.com/furlhq/furl/internal/lexer"
)

// listed is a name as a placeholder lists it.
type listed struct {
	// name is as lexer.Names finds it, which is how names are compared and counted.
	name string
	// lead are the marks before it that belong to it: the slash of an absolute path,
	// the dots of a relative one or of a hidden file, the @ of a scope.
	lead string
}

// wholeNames returns what the names in a text stand for, in order: whole paths and
// identifiers. Of a line of grep's, path.go:12:func or path.go-12-func, it returns
// the path and the rest. Escapes of JSON and of terminals before a name are left
// out, and names of which only a part is in the text.
func wholeNames(text string) iter.Seq[listed] {
	return func(yield func(listed) bool) { eachWholeName(text, yield) }
}

func eachWholeName(text string, yield func(listed) bool) {
	drive := strings.Contains(text, `:\`)
	for from, to := lexer.NextRun(text, 0); from < to; from, to = lexer.NextRun(text, to) {
		if to-from < minListed {
			continue
		}
		start, lineStart := withoutEscape(text, from, to, drive)
		if to-start < minListed || strings.HasPrefix(text[to:], "…") {
			continue
		}
		run, rest := grepLine(text[start:to], lineStart)
		if cut, ok := diffSide(text, start, run); ok {
			run, start = cut, start+2
		}
		for name := range lexer.Names(run) { // once, if it still is one
			l := listed{name: name}
			if start == from {
				l.lead = leadOf(text, start, name)
			}
			if !yield(l) {
				return
			}
		}
		for name := range lexer.Names(rest) {
			if !yield(listed{name: name}) {
				return
			}
		}
	}
}

// minListed is the length of the shortest name, in bytes.
const minListed = 6

// withoutEscape returns where a run begins if an escape before it was taken for a
// part of it, and whether it is at the start of a line. Where the run is only a
// part of a name, it returns the run's end.
func withoutEscape(text string, from, to int, drive bool) (start int, lineStart bool) {
	if from == 0 {
		return from, true
	}
	switch text[from-1] {
	case '\n':
		return from, true
	case '\\': // of a string in JSON, or of a path in Windows
		switch c := text[from]; {
		case c == 'u' && to-from > 5 && isHex(text[from+1:from+5]):
			return trimRun(text, from+5, to), false
		case c == 'n' || c == 't' || c == 'r':
			if drive {
				return to, false
			}
			return trimRun(text, from+1, to), true
		}
		if drive {
			return to, false
		}
	case '%': // of an address
		return to, false
	case '[', ';': // of a terminal: ESC [ 1 ; 31 m
		i := from
		for i < to && i < from+2 && isDigit(text[i]) {
			i++
		}
		if i > from && i < to && text[i] == 'm' {
			return trimRun(text, i+1, to), false
		}
	}
	return from, false
}

func trimRun(text string, from, to int) int {
	if at, _ := lexer.NextRun(text[:to], from); at < to {
		return at
	}
	return to
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !isDigit(s[i]) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return true
}

// grepLine splits the path off a run that begins as a line of grep's or of a
// compiler's does: path:12, path:12:5, path:12:rest, path:rest, and at the start of
// a line also path-12, path-12-rest, 12:rest and 12-rest. Other runs are returned
// as path.
func grepLine(run string, lineStart bool) (path, rest string) {
	if i := digitsEnd(run, 0); i > 0 && i < len(run) && (run[i] == ':' || run[i] == '-' && lineStart) && !isDigit(run[i+1]) {
		return "", run[i+1:]
	}
	for i := 1; i < len(run); i++ {
		if run[i] != ':' && (run[i] != '-' || !lineStart) || !hasExtension(run[:i]) {
			continue
		}
		end := i
		for end < len(run) && (run[end] == ':' || run[end] == run[i]) {
			n := digitsEnd(run, end+1)
			if n == end+1 || n < len(run) && run[n] != ':' && run[n] != run[i] {
				break
			}
			end = n
		}
		switch {
		case end > i && end < len(run):
			return run[:i], run[end+1:]
		case end > i:
			return run[:i], ""
		case run[i] == ':' && strings.IndexByte(run[:i], '/') >= 0:
			return run[:i], run[i+1:]
		}
	}
	return run, ""
}

func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// hasExtension reports whether a path ends with a file's extension: a letter and at
// most four more letters and digits.
func hasExtension(path string) bool {
	dot := strings.LastIndexByte(path, '.')
	if dot < 1 || len(path)-dot > 6 || dot+1 == len(path) {
		return false
	}
	for i := dot + 1; i < len(path); i++ {
		if c := path[i] | 0x20; (c < 'a' || 'z' < c) && (!isDigit(path[i]) || i == dot+1) {
			return false
		}
	}
	return true
}

// diffSide removes the a/ or b/ that git writes before a path in the head of a
// diff.
func diffSide(text string, from int, run string) (path string, ok bool) {
	if !strings.HasPrefix(run, "a/") && !strings.HasPrefix(run, "b/") {
		return "", false
	}
	before := text[strings.LastIndexByte(text[:from], '\n')+1 : from]
	if before == "--- " || before == "+++ " || strings.HasPrefix(before, "diff --git ") {
		return run[2:], true
	}
	return "", false
}

// leadOf returns the marks before a name that belong to it.
func leadOf(text string, from int, name string) string {
	i := from
	for i > 0 && strings.IndexByte("./@-", text[i-1]) >= 0 {
		i--
	}
	lead := text[i:from]
	if lead == "" {
		return ""
	}
	path := strings.IndexByte(name, '/') >= 0
	if i > 0 {
		switch c := text[i-1]; {
		case c == '~' && lead[0] == '/':
			i--
			lead = text[i:from]
		case strings.IndexByte(" \t\n\r\"'`([{<=:,|", c) < 0:
			return "" // the end of something else
		}
	}
	switch {
	case lead == "@", lead == "@/":
		if path {
			return lead
		}
	case lead == "--":
		return lead
	case lead == ".":
		if path || hasExtension(name) {
			return lead
		}
	case strings.HasSuffix(lead, "//"): // a comment
	case strings.Trim(strings.ReplaceAll(lead, "..", "."), "./~") == "" && strings.IndexByte(lead, '/') >= 0 && !strings.Contains(lead, "..."):
		return lead
	}
	return ""
}
