package openai

import (
	"strings"
	"testing"
)

// A6: how agents report a failure in the text of a result, in their own form,
// and texts of theirs that report none.
func TestFailedText(t *testing.T) {
	tests := []struct {
		agent, text string
		want        bool
	}{
		{"A6 tau-bench", "Error: payment method not found", true},
		{"A6 tau-bench, fine", "payment_method_1", false},
		{"A6 opencode", "Error: ENOENT: no such file or directory, open '/srv/a.go'", true},
		{"A6 opencode, fine", "<file>\n00001| Error: x\n</file>", false},
		{"A6 LangGraph", "Error: ValueError('no such table')\n Please fix your mistakes.", true},
		{"A6 JavaScript", "TypeError: fly is not a function\n    at main (/srv/a.js:1:2)", true},
		{"A6 JavaScript with a code", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'", true},
		{"A6 Java", "java.io.IOException: Stream closed", true},
		{"A6 Python", "\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'", true},
		{"A6 Python, later", "a\nb\nc\nTraceback (most recent call last):", false},
		{"A6 Kilo", `{"status":"error","message":"The tool execution failed","error":"no such file"}`, true},
		{"A6 Kilo, fine", `{"status":"approved","feedback":"error"}`, false},
		{"A6 MCP servers", `{"error": {"code": -32602, "message": "bad"}}`, true},
		{"A6 MCP servers, over lines", "{\n  \"error\": \"not found\"\n}", true},
		{"A6 MCP servers, no error", `{"error": null, "rows": [1]}`, false},
		{"A6 MCP servers, empty error", `{"error": "", "rows": [1]}`, false},
		{"A6 MCP servers, false", `{"error": false}`, false},
		{"A6 MCP servers, another field first", `{"rows": [], "error": "x"}`, false},
		{"A6 MCP", "MCP error -32602: Invalid arguments", true},
		{"A6 nanocoder", "Command failed with exit code 127: foo\nfoo: not found", true},
		{"A6 nanocoder, exit code", "EXIT_CODE: 2\nSTDERR:\nno rule", true},
		{"A6 nanocoder, fine", "EXIT_CODE: 0\nSTDERR:\n\nSTDOUT:\nError: x", false},
		{"A6 pi", "Command exited with code 1", true},
		{"A6 openclaw", "Command exited with code 127.", true},
		{"A6 pi, fine", "Command exited with code 0", false},
		{"A6 Cline", "[read_file for 'a.go'] Result:\nThe tool execution failed with the following error:\n<error>\nno such file\n</error>", true},
		{"A6 Roo Code", "The tool execution failed with the following error:\n<error>\nno\n</error>", true},
		{"A6 OpenAI Agents SDK", "An error occurred while running the tool. Please try again. Error: kaboom", true},
		{"A6 Continue", "Error executing tool \"Bash\": timed out", true},
		{"A6 kimi-code", "<system>ERROR: Command failed with exit code: 1.</system>", true},
		{"A6 kimi-code, fine", "<system>Command executed successfully.</system>", false},
		{"A6 OpenHands", "ERROR:\nNo such file", true},
		{"A6 Codex", "apply_patch verification failed: Failed to find expected lines in a.go", true},
		{"A6 Codex in code mode", "Script failed\nWall time 0.0 seconds\nOutput:\n\nScript error:\napply_patch verification failed: Failed to find expected lines in a.go", true},
		{"A6 Codex in code mode", "Script completed\nWall time 0.0 seconds\nOutput:\n\n{}", false},
		{"A6 Codex, fine", "Success. Updated the following files:\nM a.go", false},
		{"A6 SWE-agent", "Your proposed edit has introduced new syntax error(s). Please read this error message carefully.", true},
		{"A6 shell", "/bin/sh: 1: foo: not found", true},
		{"A6 shell, bash", "bash: line 1: foo: command not found", true},
		{"A6 a program that speaks of errors", "src/a.go:3: return fmt.Errorf(\"Error: x\")", false},
		{"A6 a table of errors", "Errors: 0", false},
		{"A6 words about errors", "Error handling is described below.", false},
		{"A6 nothing", "", false},
		{"A6 white space", " \n\t\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.agent, func(t *testing.T) {
			if got := FailedText(tt.text); got != tt.want {
				t.Errorf("FailedText(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
	// Each agent in the table has a test.
	for _, rule := range failedTexts {
		for agent := range strings.SplitSeq(rule.agents, ", ") {
			found := strings.HasPrefix(agent, "tools ")
			for _, tt := range tests {
				found = found || tt.want && strings.Contains(tt.agent, agent)
			}
			if !found {
				t.Errorf("no test of %s", agent)
			}
		}
	}
}

func FuzzFailedText(f *testing.F) {
	for _, s := range []string{"Error: x", `{"error":{`, "{", "sh: x: not found", strings.Repeat("Error", 100) + ": "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { FailedText(s) })
}

func BenchmarkFailedText(b *testing.B) {
	text := strings.Repeat("func main() { return }\n", 1000)
	for b.Loop() {
		FailedText(text)
	}
}
