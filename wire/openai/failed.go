package openai

import (
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// FailedOutput reports whether a tool's output says that the tool failed.
// OpenAI's formats have no flag for this, so it looks only at what the tool's
// wrapper adds, never at the output itself:
//
//   - Codex: header lines at the start ("Exit code: 1", "Process exited with
//     code 1"), before the line "Output:".
//   - gemini-cli, qwen-code: a text that starts with "Command: " and has the
//     line "Exit Code: 1" near its end.
//   - OpenHands: the bracketed lines at the end ("[The command completed with
//     exit code 1.]", "[Command finished with exit code 1]").
//   - a JSON object with "success": false, "is_error" or "isError": true, a
//     "metadata" object whose "exit_code" is not 0 (older Codex), or an
//     "exit_code" that is not 0 next to "output", "stdout" or "stderr".
func FailedOutput(text string) bool {
	switch {
	case text == "":
		return false
	case text[0] == '{' || isSpace(text[0]):
		return failedJSON(text) || failedFooter(text)
	case strings.HasPrefix(text, "Command: "):
		return failedCommand(text)
	}
	return failedHeader(text) || failedFooter(text)
}

// codexHeaders start the lines that Codex writes before an output.
var codexHeaders = []string{"Chunk ID: ", "Wall time: ", "Original token count: ", "Total output lines: ", "Warning: "}

// maxHeader bounds the number of wrapper lines that are read.
const maxHeader = 8

func failedHeader(text string) bool {
	for range maxHeader {
		line, rest, more := strings.Cut(text, "\n")
		for _, head := range []string{"Exit code: ", "Process exited with code "} {
			if code, found := strings.CutPrefix(line, head); found {
				return notZero(strings.TrimRight(code, "\r"))
			}
		}
		known := false
		for _, head := range codexHeaders {
			known = known || strings.HasPrefix(line, head)
		}
		if !known || !more {
			return false
		}
		text = rest
	}
	return false
}

// commandTail is the number of bytes at the end that are searched for the
// exit code.
const commandTail = 256

func failedCommand(text string) bool {
	if !strings.Contains(text, "\nDirectory: ") {
		return false
	}
	tail := text[max(0, len(text)-commandTail):]
	_, code, found := cutLast(tail, "\nExit Code: ")
	code, _, _ = strings.Cut(code, "\n")
	return found && notZero(code)
}

func failedFooter(text string) bool {
	for range maxHeader {
		text = strings.TrimRight(text, "\n")
		_, line, found := cutLast(text, "\n")
		if !found {
			line = text
		}
		if len(line) < 2 || line[0] != '[' || line[len(line)-1] != ']' {
			return false
		}
		said := strings.TrimSuffix(line[1:len(line)-1], ".")
		for _, head := range []string{"The command completed with exit code ", "Command finished with exit code "} {
			if code, found := strings.CutPrefix(said, head); found {
				return notZero(code)
			}
		}
		text = text[:len(text)-len(line)]
	}
	return false
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// notZero reports whether code is a number other than zero.
func notZero(code string) bool {
	n, err := strconv.Atoi(code)
	return err == nil && n != 0
}

func failedJSON(text string) bool {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '{' || raw[len(raw)-1] != '}' {
		return false
	}
	var failed, code, output bool
	r := rawjson.NewReader(raw)
	for key := range r.Fields() {
		switch string(key) {
		case "success":
			ok, isBool := r.Bool()
			failed = failed || isBool && !ok
		case "is_error", "isError":
			yes, _ := r.Bool()
			failed = failed || yes
		case "exit_code":
			n, _ := r.Int()
			code = n != 0
		case "output", "stdout", "stderr":
			output = true
		case "metadata":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				if string(key) == "exit_code" {
					n, _ := r.Int()
					failed = failed || n != 0
				}
			}
		}
	}
	return r.End() == nil && (failed || code && output)
}
