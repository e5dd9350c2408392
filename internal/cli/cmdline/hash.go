package cmdline

import (
	"crypto/sha256"
	"os"
)

// HashOf returns the hash of a file, "" without one. A pipe, which is read once, has none.
func HashOf(file string) (hash string, ok bool) {
	if file == "" {
		return "", true
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(data)
	return string(sum[:]), true
}
