package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli"
)

// testdata/index-2.db is a store with a search index of version 2, whose terms are not
// normalized and which does not tell answers. A search rebuilds the index first.
func TestSearchRebuildsOldIndex(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join("testdata", "index-2.db"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "none.yaml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FURL_CONFIG", config)
	for _, tt := range []struct{ words, session, first string }{
		{"naïve café", "", "furl:kept2/1.0"},
		{"dishes in Zuerich", "", "furl:kept2/1.0"},
		{"🎉", "", "furl:kept2/6.0"},
		{"猫", "kept1", "furl:kept1/9.0"},
		{"Maenner Strasse", "kept1", "furl:kept1/7.0"},
		{"C++", "", "furl:kept2/4.0"},
	} {
		store := filepath.Join(dir, "furl.db") // with its old index each time
		if err := os.WriteFile(store, data, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"search", "--store", store, tt.words}
		if tt.session != "" {
			args = append(args, "--session", tt.session)
		}
		var out, notes bytes.Buffer
		if code := cli.Main(args, nil, strings.NewReader(""), &out, &notes); code != 0 {
			t.Fatalf("search %s: code %d: %s", tt.words, code, notes.String())
		}
		if lines := strings.Split(out.String(), "\n"); len(lines) < 2 || !strings.HasPrefix(lines[1], "  "+tt.first+" ") {
			t.Errorf("search %s: want %s first:\n%s", tt.words, tt.first, out.String())
		}
	}
}
