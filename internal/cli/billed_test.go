package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/dev/recordings"
)

// What a recording was billed is the same in a replay of the file, in furl status of its
// imported sessions, and in a replay of what furl
// exports of these.
func TestBilledEverywhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "none.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "none.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../transcript/testdata/*.json*")
	if err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	if os.Getenv(recordings.Env) != "" {
		files = append(files, recordings.Files(t, "entire-cli/*.jsonl.gz", "agentv/*.jsonl.gz")...)
	}
	run := func(file string, args ...string) []byte {
		var out, notes bytes.Buffer
		if code := cli.Main(args, nil, strings.NewReader(""), &out, &notes); code != 0 && out.Len() == 0 {
			t.Fatalf("%s: furl %s: code %d: %s", file, strings.Join(args, " "), code, &notes)
		}
		return out.Bytes()
	}
	type replayed struct{ Recordings []struct{ Billed *float64 } }
	billedIn := func(data []byte) (sum float64) {
		var r replayed
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		for _, rec := range r.Recordings {
			if rec.Billed != nil {
				sum += *rec.Billed
			}
		}
		return sum
	}
	known := 0
	for i, file := range files {
		if strings.HasSuffix(file, ".want") || strings.Contains(file, "broken") || strings.Contains(file, "furl-v1") {
			continue // furl-v1 is a fork, whose first requests its original counts
		}
		store := filepath.Join(dir, "furl"+string(rune('a'+i%26))+".db")
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(store + end); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		want := billedIn(run(file, "replay", file, "--policy", "none", "--json"))
		var status, stored float64
		dec := json.NewDecoder(bytes.NewReader(run(file, "import", "--json", "--store", store, file)))
		for {
			var lines struct{ Imported []struct{ Session string } }
			if err := dec.Decode(&lines); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, s := range lines.Imported {
				var st struct{ Billed *float64 }
				if err := json.Unmarshal(run(file, "status", "--format", "json", "--store", store, "--session", s.Session), &st); err != nil {
					t.Fatal(err)
				}
				if st.Billed != nil {
					status += *st.Billed
				}
				exported := filepath.Join(dir, "exported.jsonl")
				if err := os.WriteFile(exported, run(file, "export", s.Session, "--store", store), 0o600); err != nil {
					t.Fatal(err)
				}
				stored += billedIn(run(file, "replay", exported, "--policy", "none", "--json"))
			}
		}
		if want > 0 {
			known++
		}
		if math.Abs(status-want) > 1e-9 || math.Abs(stored-want) > 1e-9 {
			t.Errorf("%s: a replay says $%v were billed, furl status $%v, a replay of the exported sessions $%v", file, want, status, stored)
		}
	}
	if known < 20 {
		t.Errorf("only %d recordings have a usage with a price", known)
	}
}
