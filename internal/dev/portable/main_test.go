package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.26\n",
		"m.go":         "package m\n\nimport \"os\"\n\nvar Args = os.Args\n",
		"m_unix.go":    "//go:build unix\n\npackage m\n\nfunc kill() {}\n",
		"kill_test.go": "package m\n\nfunc init() { kill() }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	if problems := check(root, "darwin/arm64"); len(problems) > 0 {
		t.Errorf("macOS: %q", problems)
	}
	problems := check(root, "windows/amd64")
	if len(problems) != 1 || !strings.Contains(problems[0], "kill_test.go:3:15: undefined: kill") {
		t.Errorf("Windows: %q", problems)
	}
}
