//go:build darwin || linux || freebsd || netbsd || openbsd || dragonfly

package filelock_test

import (
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/internal/filelock"
)

// Only the first that shares a file is alone, and the next one after all have let go of it.
func TestShare(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	share := func(want bool) (unlock func() error) {
		t.Helper()
		alone, unlock, err := filelock.Share(name)
		if err != nil || alone != want {
			t.Fatalf("alone: %v, %v, want %v", alone, err, want)
		}
		return unlock
	}
	let := func(unlock func() error) {
		t.Helper()
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
	first := share(true)
	second := share(false)
	let(first)
	third := share(false)
	let(second)
	let(third)
	let(share(true))
	if _, _, err := filelock.Share(filepath.Join(name, "below")); err == nil {
		t.Error("a file below a file is locked")
	}
}
