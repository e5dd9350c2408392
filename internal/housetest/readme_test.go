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

var update = flag.Bool("update", false, "write what furl replay prints into README.md")

// The transcript in the README is what the command prints on a machine
// without recordings. When it does not, make generate puts it right.
func TestReadme(t *testing.T) {
	const prompt = "$ go run ./cmd/furl replay\n"
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME"} {
		t.Setenv(name, "")
	}
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"replay"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("furl replay ends with %d: %s", code, &errs)
	}
	file := filepath.Join("..", "..", "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("README.md does not show what furl replay prints; make generate writes it anew. It prints:\n%s", want)
	}
}
