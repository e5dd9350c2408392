package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/audit"
)

func open(t interface{ Fatal(...any) }, name string, size int64) *audit.Log {
	l, err := audit.Open(name, &audit.Options{MaxSize: size})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// entries returns the reasons of all entries.
func entries(name string) (list []string, hash string, err error) {
	for r, err := range audit.All(name) {
		if err != nil {
			return list, hash, err
		}
		list, hash = append(list, r.Reason), r.Hash
	}
	return list, hash, nil
}

// Entries come back in order, over files and processes. Any line that is removed,
// changed, copied or moved is noticed, except at the end.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "audit[1].jsonl")
	var want []string
	one, two := open(t, name, 700), open(t, name, 700)
	defer one.Close()
	defer two.Close()
	for i, reason := range []string{"", `"`, "a\nb", `\`, "é\x00", `","hash":"`, strings.Repeat("x", 400), "}", "{"} {
		if err := []*audit.Log{one, two}[i%2].Append(audit.Entry{Action: "read", Outcome: audit.Allowed, Reason: reason}); err != nil {
			t.Fatal(err)
		}
		want = append(want, reason)
	}
	got, hash, err := entries(name)
	if err != nil || !slices.Equal(got, want) || len(hash) != 64 {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit?1?.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(s string) bool { return strings.HasSuffix(s, ".lock") })
	if len(files) < 3 {
		t.Fatalf("the files are %q", files)
	}
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(files).Draw(t, "file")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}()
		lines := bytes.SplitAfter(data, []byte("\n"))
		lines = lines[:len(lines)-1]
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		var changed [][]byte
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0: // remove
			changed = slices.Delete(slices.Clone(lines), i, i+1)
			if file == name && i == len(lines)-1 {
				return
			}
		case 1: // repeat
			changed = slices.Insert(slices.Clone(lines), i, lines[i])
		case 2: // change a byte
			changed = slices.Clone(lines)
			at := rapid.IntRange(0, len(lines[i])-2).Draw(t, "byte")
			changed[i] = bytes.Clone(lines[i])
			changed[i][at] ^= 1
		}
		if err := os.WriteFile(file, bytes.Join(changed, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := entries(name); err == nil {
			t.Fatal("the change is not noticed")
		} else if e := (*audit.BrokenError)(nil); !errors.As(err, &e) {
			t.Fatal(err)
		}
	})
}

// A line that was cut off while it was written is removed, and the log says so.
func TestTornLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, name, 0)
	for range 3 {
		if err := l.Append(audit.Entry{Action: "read", Outcome: audit.Allowed, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 20, 200} {
		if err := os.WriteFile(name, data[:len(data)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, name, 0)
		l.Close()
		if got, _, err := entries(name); err != nil || len(got) != 3 || !strings.HasPrefix(got[2], "removed an incomplete line of ") {
			t.Errorf("%d bytes less: %q, %v", cut, got, err)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

// Several writers at a time make one chain.
func TestConcurrentWriters(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	for range 4 {
		l := open(t, name, 2000)
		all.Go(func() {
			defer l.Close()
			for range 10 {
				if err := l.Append(audit.Entry{Action: "read", Outcome: audit.Allowed, Target: strings.Repeat("y", 600)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, _, err := entries(name); err != nil || len(got) != 40 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

func FuzzVerify(f *testing.F) {
	name := filepath.Join(f.TempDir(), "audit.jsonl")
	l := open(f, name, 0)
	for range 2 {
		if err := l.Append(audit.Entry{Action: "read", Outcome: audit.Allowed}); err != nil {
			f.Fatal(err)
		}
	}
	l.Close()
	good, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if list, _, err := entries(name); err == nil && len(list) > 0 && !bytes.Contains(data, []byte(`"hash":"`)) {
			t.Errorf("%q is valid", data)
		}
	})
}
