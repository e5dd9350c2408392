package housetest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli"
)

//go:generate go test -run TestReadme -update

var update = flag.Bool("update", false, "write what the commands print into README.md and the documents")

// The transcripts in the README and in the documents match the output of the
// commands on a machine without recordings. make generate updates them.
func TestReadme(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "KIMI_CODE_HOME", "CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR", "CONTINUE_GLOBAL_DIR", "FACTORY_HOME_OVERRIDE", "FURL_CONFIG"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		command string
		pages   []string
	}{
		{"replay --policy clear-100k --policy auto", []string{"README.md", "docs/use/replay.md"}},
		{"demo", []string{"README.md"}},
	} {
		var out, errs bytes.Buffer
		if code := cli.Main(strings.Fields(c.command), nil, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("furl %s ends with %d: %s", c.command, code, &errs)
		}
		for _, page := range c.pages {
			checkTranscript(t, page, c.command, strings.TrimRight(out.String(), "\n")+"\n")
		}
	}
}

// checkTranscript compares the output of a command with its transcript in a
// page, or with -update writes it into the page.
func checkTranscript(t *testing.T, page, command, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "..", filepath.FromSlash(page))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prompt := "$ furl " + command + "\n"
	before, rest, ok := strings.Cut(string(text), prompt)
	shown, after, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("%s has no transcript that begins with %q", page, prompt)
	}
	switch {
	case *update:
		if err := os.WriteFile(file, []byte(before+prompt+want+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case shown != want:
		t.Errorf("%s differs from the output of furl %s; run make generate. Output:\n%s", page, command, want)
	}
}
