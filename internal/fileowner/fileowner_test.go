//go:build linux

package fileowner_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/furlhq/furl/internal/fileowner"
)

// A file that root creates in the folder of a service belongs to the service. One that
// exists keeps its owner.
func TestOpen(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 4321, 4322); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "file")
	check := func(uid, gid uint32) {
		t.Helper()
		f, err := fileowner.Open(name, os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || s.Gid != gid || info.Mode().Perm() != 0o600 {
			t.Errorf("the file belongs to %d:%d with mode %v, want %d:%d", s.Uid, s.Gid, info.Mode(), uid, gid)
		}
	}
	check(4321, 4322)
	if err := os.Chown(name, 5, 6); err != nil {
		t.Fatal(err)
	}
	check(5, 6)
	if _, err := fileowner.Open(name, os.O_RDWR|os.O_EXCL); !os.IsExist(err) {
		t.Errorf("an existing file with O_EXCL: %v", err)
	}
}
