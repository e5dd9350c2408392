package eval

import (
	"os"
	"path/filepath"
)

// removeAll is os.RemoveAll for folders in which others are not writable, such as Go's
// module cache.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	makeWritable(dir)
	return os.RemoveAll(dir)
}

// makeWritable makes all folders writable, as far as possible.
func makeWritable(dir string) {
	_ = os.Chmod(dir, 0o700) // removing it returns the error
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			makeWritable(filepath.Join(dir, e.Name()))
		}
	}
}
