package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/dev/embedtest"
)

// With an embeddings endpoint, an import computes vectors and a search uses them. If the
// endpoint is down, both work without it.
func TestEmbeddings(t *testing.T) {
	dir := t.TempDir()
	srv := embedtest.New(t)
	t.Setenv("FURL_DATA", dir)
	t.Setenv("PLANTED_KEY", "planted-secret-key")
	file := filepath.Join(dir, "config.yaml")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recording := filepath.Join(dir, "s.json")
	write(recording, `{"messages":[{"role":"user","content":"rename the configuration loader"},{"role":"assistant","content":"The loader of configurations is renamed."}]}`)
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := cli.Main(append(args, "--config", file), nil, strings.NewReader(""), &out, &errs); code != want {
			t.Fatalf("furl %v ends with %d: %s", args, code, &errs)
		}
		return out.String() + errs.String()
	}
	write(file, "embeddings: {url: \""+srv.URL+"\", model: m, key_env: PLANTED_KEY}\n")
	run(0, "import", recording)
	if out := run(0, "stats", "--json"); strings.Contains(out, `"vector_bytes": 0`) {
		t.Errorf("no vectors were made: %s", out)
	}
	if out := run(0, "search", "loader", "--session", "latest", "--in", "path"); !strings.Contains(out, "furl:") {
		t.Errorf("nothing is found: %s", out)
	}
	write(file, "embeddings: {url: \"http://127.0.0.1:1\", model: m}\n")
	if out := run(0, "search", "loader", "--session", "latest", "--in", "path"); !strings.Contains(out, "furl:") {
		t.Errorf("nothing is found while the endpoint is down: %s", out)
	}
	write(file, "embeddings: {url: \"http://127.0.0.1:1\", model: m, key_env: NOT_SET_ANYWHERE}\n")
	if out := run(1, "search", "loader", "--session", "latest"); !strings.Contains(out, "$NOT_SET_ANYWHERE has no key") {
		t.Errorf("an unset key: %s", out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "furl.db"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("planted-secret-key")) {
		t.Error("the key is in the store")
	}
}
