package demo

import (
	"fmt"
	"regexp"
	"strings"
)

// see reads a file, or limit lines from line offset on.
func (a *agent) see(path string, window ...int) act {
	text, ok := a.project.files[path]
	if !ok {
		a.fail("read %s: no such file", path)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	args := `{"file_path":` + quote(root+path) + `}`
	first, last := 1, len(lines)
	if len(window) == 2 {
		first = max(1, window[0])
		last = min(last, first+window[1]-1)
		args = fmt.Sprintf(`{"file_path":%s,"offset":%d,"limit":%d}`, quote(root+path), first, last-first+1)
	}
	a.read[path] = strings.Join(lines[first-1:last], "\n") + "\n"
	return act{tool: "Read", args: args, result: numbered(lines, first, last), took: a.between(1, 2)}
}

// root is where the repository is.
const root = "/home/mira/quay/"

// numbered gives lines first to last, both included, with their numbers.
func numbered(lines []string, first, last int) string {
	var b strings.Builder
	for n := first; n <= last; n++ {
		fmt.Fprintf(&b, "%6d→%s\n", n, lines[n-1])
	}
	return b.String()
}

// grep searches the files below a folder.
func (a *agent) grep(pattern, under string) act {
	args := fmt.Sprintf(`{"pattern":%s}`, quote(pattern))
	if under != "" {
		args = fmt.Sprintf(`{"pattern":%s,"path":%s}`, quote(pattern), quote(under))
	}
	var b strings.Builder
	re := regexp.MustCompile(pattern)
	for _, path := range a.project.paths(under) {
		n := 0
		for line := range strings.Lines(a.project.files[path]) {
			n++
			if re.MatchString(line) {
				fmt.Fprintf(&b, "%s:%d:%s", path, n, line)
			}
		}
	}
	out := b.String()
	if out == "" {
		out = "No matches found"
	}
	return act{tool: "Grep", args: args, result: out, took: a.between(1, 3)}
}

// bash runs a command whose output is given.
func (a *agent) bash(command, what, out string, failed bool, from, to int) act {
	args := fmt.Sprintf(`{"command":%s,"description":%s}`, quote(command), quote(what))
	if failed {
		out = "Exit code 1\n" + out
	}
	return act{tool: "Bash", args: args, result: out, failed: failed, took: a.between(from, to)}
}

// change is one edit, for git diff.
type change struct{ path, old, new string }

// edit replaces sub by repl, behind the first place where within stands. What
// is quoted grows, line by line, until it is unique in the file. The agent
// reads the place again when its newest read does not show it.
func (a *agent) edit(say, path, within, sub, repl string) {
	text := a.project.files[path]
	from := strings.Index(text, within)
	at := -1
	if from >= 0 {
		at = strings.Index(text[from:], sub)
	}
	if at < 0 {
		a.fail("edit %s: no %q behind %q", path, sub, within)
		return
	}
	lo, hi := from+at, from+at+len(sub)
	lo, hi = lineStart(text, lo), lineEnd(text, hi)
	for grown := 0; grown < 1 || strings.Count(text, text[lo:hi]) > 1; grown++ {
		if lo > 0 {
			lo = lineStart(text, lo-1)
		}
		hi = lineEnd(text, hi+1)
	}
	old := strings.TrimSuffix(text[lo:hi], "\n")
	if !strings.Contains(a.read[path], old) {
		a.do(a.pick(
			"Let me look at that part again before I change it.",
			"The file has changed since I read it; I'll read this part again.",
			fmt.Sprintf("I need the exact lines of %s for the edit.", path),
		), a.see(path, strings.Count(text[:lo], "\n")-a.rng.IntN(20), 40+a.rng.IntN(40)))
	}
	rel := from + at - lo
	new := old[:rel] + repl + old[rel+len(sub):]
	after := text[:lo] + new + text[lo+len(old):]
	a.project.files[path] = after
	a.read[path] = strings.Replace(a.read[path], old, new, 1)
	a.changes = append(a.changes, change{path, old, new})
	lines := strings.Split(after, "\n")
	first := max(1, strings.Count(after[:lo], "\n")-2)
	last := min(len(lines), first+strings.Count(new, "\n")+7)
	a.do(say, act{
		tool: "Edit",
		args: fmt.Sprintf(`{"file_path":%s,"old_string":%s,"new_string":%s}`, quote(root+path), quote(old), quote(new)),
		result: fmt.Sprintf("The file %s has been updated. Here is a part of it with the change:\n%s",
			root+path, numbered(lines, first, last)),
		took: a.between(1, 3),
	})
}

// addAfter puts code behind the function that begins with fn.
func (a *agent) addAfter(say, path, fn, code string) {
	a.edit(say, path, fn, "\n}", "\n}\n\n"+code)
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text string, at int) int {
	at = min(at, len(text))
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// write makes a new file.
func (a *agent) write(say, path, content string) {
	a.project.files[path] = content
	a.read[path] = content
	a.changes = append(a.changes, change{path, "", content})
	a.do(say, act{
		tool:   "Write",
		args:   fmt.Sprintf(`{"file_path":%s,"content":%s}`, quote(root+path), quote(content)),
		result: fmt.Sprintf("File created successfully at: %s", root+path),
		took:   a.between(1, 2),
	})
}

// line is the number of the first line that holds sub, behind within.
func (a *agent) line(path, within, sub string) int {
	text := a.project.files[path]
	from := strings.Index(text, within)
	if from < 0 {
		a.fail("%s: no %q", path, within)
		return 1
	}
	at := strings.Index(text[from:], sub)
	if at < 0 {
		a.fail("%s: no %q behind %q", path, sub, within)
		return 1
	}
	return strings.Count(text[:from+at], "\n") + 1
}

// diff is what git would tell about the changes since the last commit.
func (a *agent) diff() string {
	var b strings.Builder
	last := ""
	for _, c := range a.changes {
		if c.path != last {
			fmt.Fprintf(&b, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n", c.path, c.path, c.path, c.path)
			last = c.path
		}
		at := max(0, strings.Index(a.project.files[c.path], c.new))
		fmt.Fprintf(&b, "@@ -%d +%d @@\n", strings.Count(a.project.files[c.path][:at], "\n")+1, strings.Count(a.project.files[c.path][:at], "\n")+1)
		signed(&b, "-", c.old)
		signed(&b, "+", c.new)
	}
	return b.String()
}

func signed(b *strings.Builder, sign, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(b, "%s%s\n", sign, line)
	}
}
