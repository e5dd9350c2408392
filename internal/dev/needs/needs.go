// Package needs skips tests that need what a system lacks, with the same reason for the same
// cause: testreport groups skipped tests by their reasons.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Symlink makes a symbolic link.
func Symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Logf("create a link: %v", err)
		t.Skip("this system or user cannot create symbolic links")
	}
}

// Shell skips the test on a system without sh.
func Shell(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("this system has no sh")
	}
}
