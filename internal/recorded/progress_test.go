package recorded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/replay"
)

func TestFileProgress(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a.jsonl": 100, "b\n.jsonl": 300, ".hidden": 1000, "sub/c.jsonl": 600, "old.jsonl": 5000} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Skip(err) // a system that refuses the name
		}
	}
	p := CountFiles([]string{dir}, func(path string) bool { return filepath.Base(path) == "old.jsonl" })
	bars := func(full int) string { return strings.Repeat("█", full) + strings.Repeat("░", 20-full) }
	for _, tt := range []struct {
		file        string
		done, total int
		after       time.Duration
		want        string
	}{
		{"a.jsonl", 0, 12, 0, bars(0) + " file 1 of 3: a.jsonl"},
		{"b\n.jsonl", 0, 12, time.Second, bars(2) + " file 2 of 3: b␊.jsonl"},
		{"b\n.jsonl", 6, 12, 5 * time.Second, bars(5) + " file 2 of 3, 15 s left: b␊.jsonl"},
		{"sub/c.jsonl", 0, 12, 400 * time.Second, bars(8) + " file 3 of 3, 10 min left: c.jsonl"},
	} {
		path := filepath.Join(dir, filepath.FromSlash(tt.file))
		if tt.done == 0 {
			p.next(path)
		}
		at := replay.Progress{File: path, Done: tt.done, Total: tt.total}
		if got := p.Line(at, p.started.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.file, got, tt.want)
		}
	}
	var none *Progress
	none.next("a")
	if got := Roughly(3 * time.Hour); got != "3 h" {
		t.Errorf("three hours are %q", got)
	}
}
