package pgtest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program of PostgreSQL, such as pg_dump. Without it the
// test is skipped.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if dir, ok := binaries(); ok {
		return filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(howto)
	}
	return path
}
