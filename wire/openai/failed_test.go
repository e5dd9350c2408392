package openai

import (
	"strings"
	"testing"
)

func TestFailedOutput(t *testing.T) {
	tests := []struct {
		name, text string
		want       bool
	}{
		{"A6 Codex shell", "Exit code: 1\nWall time: 0.2 seconds\nOutput:\nno such file\n", true},
		{"A6 Codex shell, terminated", "Exit code: -1\nWall time: 0.2 seconds\nOutput:\n", true},
		{"A6 Codex shell, fine", "Exit code: 0\nWall time: 0.2 seconds\nOutput:\nExit code: 1\n", false},
		{"A6 Codex exec", "Chunk ID: 4a1f02\nWall time: 1.1419 seconds\nProcess exited with code 128\nOriginal token count: 36\nOutput:\nfatal\n", true},
		{"A6 Codex exec, fine", "Chunk ID: 4a1f02\nWall time: 1.1419 seconds\nProcess exited with code 0\nOriginal token count: 36\nOutput:\nProcess exited with code 1\n", false},
		{"A6 Codex exec, still running", "Chunk ID: 4a1f02\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nProcess exited with code 1\n", false},
		{"A6 older Codex", `{"output":"no such file","metadata":{"exit_code":2,"duration_seconds":0.1}}`, true},
		{"A6 older Codex, fine", `{"output":"{\"success\":false}","metadata":{"exit_code":0,"duration_seconds":0.1}}`, false},
		{"A6 success", `{"success": false, "message": "nothing there"}`, true},
		{"A6 success, spaced", " \n{\"success\":false}\n", true},
		{"A6 success, fine", `{"success": true, "error": "none"}`, false},
		{"A6 success as a word", `{"success": "false"}`, false},
		{"A6 success deep inside", `{"tests":[{"success":false}]}`, false},
		{"A6 success in a list", `[{"success":false}]`, false},
		{"A6 success in cut JSON", `{"success":false,`, false},
		{"A6 MCP", `{"content":[{"type":"text","text":"no"}],"isError":true}`, true},
		{"A6 is_error", `{"is_error":true}`, true},
		{"A6 process", `{"exit_code":1,"stdout":"","stderr":"no"}`, true},
		{"A6 process, fine", `{"exit_code":0,"stdout":"","stderr":"no"}`, false},
		{"A6 a number that is not a process's", `{"exit_code":1,"name":"a record of some table"}`, false},
		{"A6 gemini-cli", "Command: make\nDirectory: (root)\nOutput: no rule\nError: (none)\nExit Code: 2\nSignal: 0\nBackground PIDs: (none)", true},
		{"A6 gemini-cli, last line", "Command: make\nDirectory: (root)\nOutput: no rule\nExit Code: 2", true},
		{"A6 gemini-cli, fine", "Command: make\nDirectory: (root)\nOutput: Exit Code: 2\nError: (none)\nExit Code: 0\nSignal: 0", false},
		{"A6 gemini-cli, quoted far above", "Command: cat log\nDirectory: (root)\nOutput:\nExit Code: 2\n" + strings.Repeat("more of the log\n", 50), false},
		{"A6 text that begins alike", "Command: the chain of\nExit Code: 2\n", false},
		{"A6 OpenHands", "no such file\n[The command completed with exit code 1.]", true},
		{"A6 OpenHands, full", "no\n[The command completed with exit code 127.]\n[Current working directory: /w]\n[Python interpreter: /usr/bin/python]\n[Command finished with exit code 127]\n", true},
		{"A6 OpenHands, fine", "[The command completed with exit code 1.]\nwas logged\n[Current working directory: /w]\n[Command finished with exit code 0]", false},
		{"A6 text about it", "The process exited with code 1.\n", false},
		{"A6 an error in the output", "Error: no such file\nExit code: 1", false},
		{"nothing", "", false},
		{"white space", "  \n", false},
		{"a bracket", "[", false},
		{"brackets", strings.Repeat("[a]\n", 1000), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := FailedOutput(tt.text); got != tt.want {
				t.Errorf("FailedOutput(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func FuzzFailedOutput(f *testing.F) {
	for _, s := range []string{"Exit code: 1\n", `{"success":false}`, "[Command finished with exit code 1]", "Command: x\nDirectory: y\nExit Code: 1", "Chunk ID: \n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { FailedOutput(s) })
}
