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

var update = flag.Bool("update", false, "write what the commands print into README.md")

// The transcripts in the README match the output of the commands on a machine
// without recordings. make generate updates them.
func TestReadme(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "FURL_CONFIG"} {
		t.Setenv(name, "")
	}
	file := filepath.Join("..", "..", "README.md")
	for _, command := range []string{"replay --policy clear-100k --policy auto", "demo"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := cli.Main(strings.Fields(command), nil, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("furl %s ends with %d: %s", command, code, &errs)
		}
		prompt := "$ furl " + command + "\n"
		before, rest, ok := strings.Cut(string(text), prompt)
		shown, after, closed := strings.Cut(rest, "```\n")
		if !ok || !closed {
			t.Fatalf("README.md has no transcript that begins with %q", prompt)
		}
		want := strings.TrimRight(out.String(), "\n") + "\n"
		switch {
		case *update:
			if err := os.WriteFile(file, []byte(before+prompt+want+"```\n"+after), 0o644); err != nil {
				t.Fatal(err)
			}
		case shown != want:
			t.Errorf("README.md differs from the output of furl %s; run make generate. Output:\n%s", command, want)
		}
	}
}
