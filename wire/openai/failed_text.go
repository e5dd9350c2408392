package openai

import (
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
)

// FailedText reports whether the first lines of a tool's output read like a
// failure. OpenAI's formats have no flag for it, and many agents report a
// failure only in words. This is a guess, unlike FailedOutput: a tool may
// succeed in printing such a text. The rules are in failedTexts.
func FailedText(text string) bool {
	if text == "" {
		return false
	}
	lines := leadingLines(text)
	for i := range failedTexts {
		if failedTexts[i].matches(lines) {
			return true
		}
	}
	return false
}

// failedText is one way to report a failure.
type failedText struct {
	// agents are those whose code writes it.
	agents  string
	matches func(lines []string) bool
}

// failedTexts are all rules. They read the first maxLeading lines that are not
// empty, of maxLeadingBytes each. docs/use/configuration.md lists them.
var failedTexts = []failedText{
	// Error: ENOENT: no such file or directory, open '/x'
	{"tau-bench, opencode, Continue, nanocoder, LangGraph, tools in JavaScript and Python", onFirst(namedError.MatchString)},
	// Traceback (most recent call last):
	{"tools in Python", onAny(starting("Traceback (most recent call last)"))},
	// {"error": "not found"}, {"status": "error", …}
	{"Roo Code, Kilo, MCP servers", errorObject},
	// Command failed with exit code 127: foo
	{"nanocoder, kimi-code, tools in JavaScript", onFirst(starting("Command failed with exit code", "Command failed: "))},
	// Command exited with code 1; EXIT_CODE: 1
	{"pi, openclaw, nanocoder", onFirst(exited)},
	// [read_file for 'x'] Result:\nThe tool execution failed with the following error:
	{"Cline, Roo Code, Kilo", onAny(starting("The tool execution failed with the following error", "The tool execution failed"))},
	// An error occurred while running the tool. Please try again. Error: …
	{"OpenAI Agents SDK", onFirst(starting("An error occurred while running the tool"))},
	// Error executing tool "x": …
	{"Continue, MCP servers", onFirst(starting("Error executing tool", "Tool execution failed", "MCP error -"))},
	// <system>ERROR: Command failed with exit code: 1.</system>
	{"kimi-code", onFirst(starting("<system>ERROR: "))},
	// ERROR:\n…
	{"OpenHands", onFirst(starting("ERROR:"))},
	// apply_patch verification failed: …
	{"Codex", onFirst(starting("apply_patch verification failed", "exec_command failed", "write_stdin failed", "failed to parse function arguments", "Script failed"))},
	// Your proposed edit has introduced new syntax error(s).
	{"SWE-agent", onFirst(starting("Your proposed edit has introduced new syntax error"))},
	// bash: line 1: foo: command not found
	{"SWE-agent, tools that run a shell", onFirst(shellError.MatchString)},
}

const (
	maxLeading      = 3
	maxLeadingBytes = 300
)

// leadingLines returns the first lines that are not empty, without white space
// around them.
func leadingLines(text string) []string {
	lines := make([]string, 0, maxLeading)
	text = text[:min(len(text), 4*maxLeadingBytes)]
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			if lines = append(lines, line[:min(len(line), maxLeadingBytes)]); len(lines) == maxLeading {
				break
			}
		}
	}
	return lines
}

func onFirst(match func(string) bool) func([]string) bool {
	return func(lines []string) bool { return len(lines) > 0 && match(lines[0]) }
}

func onAny(match func(string) bool) func([]string) bool {
	return func(lines []string) bool { return slices.ContainsFunc(lines, match) }
}

func starting(heads ...string) func(string) bool {
	return func(line string) bool {
		return slices.ContainsFunc(heads, func(head string) bool { return strings.HasPrefix(line, head) })
	}
}

var (
	// namedError matches "Error: ", and names such as TypeError and
	// java.io.IOException, also with a code: "Error [ERR_X]: ".
	namedError = lazyregexp.New(`^(?:Uncaught )?(?:[a-z]+\.)*[A-Z]?[A-Za-z]*(?:Error|Exception)(?: \[[A-Z_]+\])?: `)
	shellError = lazyregexp.New(`^(?:/\S*/)?(?:ba|z|da|k)?sh: .*(?:not found|No such file or directory|Permission denied)$`)
)

// exited reports whether a line states an exit code other than zero.
func exited(line string) bool {
	for _, head := range [...]string{"Command exited with code ", "Process exited with code ", "EXIT_CODE: ", "exit_code: "} {
		if code, ok := strings.CutPrefix(line, head); ok {
			return notZero(strings.TrimRight(code, "."))
		}
	}
	return false
}

// errorObject reports whether the lines start an object whose first field says
// that something failed.
func errorObject(lines []string) bool {
	if len(lines) == 0 || lines[0][0] != '{' {
		return false
	}
	text := strings.Join(lines, "\n")
	r := rawjson.NewReader([]byte(text))
	for key := range r.Fields() {
		name := string(key)
		switch {
		case name == "error":
			switch r.Kind() {
			case '"':
				// The rest of the object may be on the lines that are not read.
				return !strings.HasPrefix(text[r.Offset():], `""`)
			case '{', 't':
				return true
			}
			return false
		case name == "status" || name == "type":
			value, _ := r.String()
			return value == "error"
		}
		return false
	}
	return false
}
