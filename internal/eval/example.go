package eval

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed example
var example embed.FS

// WriteExample writes the example task set to a folder that does not exist or is empty.
// Its tasks have scripts, so that a simulated provider can solve them.
func WriteExample(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", dir))
	}
	return fs.WalkDir(example, "example", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "example" {
			return err
		}
		rel, err := filepath.Rel("example", filepath.FromSlash(name))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.Mkdir(to, 0o755)
		}
		data, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
