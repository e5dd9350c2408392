package setup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// killMe makes TestKilled set up and undo until it is killed.
const killMe = "FURL_SETUP_TEST_LOOP"

// A setup that is killed at any moment leaves each file in a state before or after it,
// and undoing puts back the first one.
func TestKilled(t *testing.T) {
	second := options
	second.URL = "http://127.0.0.1:9999"
	if folder := os.Getenv(killMe); folder != "" {
		for {
			apply(t, folder, "claude", options)
			apply(t, folder, "claude", second)
			undo(t, folder, "claude")
		}
	}
	folder := home(t)
	var names []string
	var states [][][]byte
	for _, name := range []string{".claude/settings.json", ".claude.json"} {
		path := filepath.Join(os.Getenv("HOME"), filepath.FromSlash(name))
		names, states = append(names, path), append(states, [][]byte{[]byte(files[name][0])})
		write(t, path, []byte(files[name][0]))
	}
	for _, o := range []Options{options, second} {
		apply(t, folder, "claude", o)
		for i, name := range names {
			states[i] = append(states[i], read(t, name))
		}
	}
	undo(t, folder, "claude")
	for round := range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killMe+"="+folder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+7*round) * time.Millisecond) // any moment is right
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for i, name := range names {
			if got := read(t, name); !slices.ContainsFunc(states[i], func(s []byte) bool { return bytes.Equal(s, got) }) {
				t.Fatalf("round %d: %s has\n%s", round, name, got)
			}
		}
		undo(t, folder, "claude")
		for i, name := range names {
			if got := read(t, name); !bytes.Equal(got, states[i][0]) {
				t.Fatalf("round %d: after undo %s has\n%s", round, name, got)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(names[1]), tempPattern)); len(left) > 0 {
		t.Errorf("temporary files %q", left)
	}
}
