// Package fileowner creates files that the owner of their folder can use. A command that
// root runs next to a service would otherwise leave files that the service cannot open.
package fileowner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens a file, or creates it with mode 0600 and, if root runs the process, with the
// owner of its folder.
func Open(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) && flag&os.O_EXCL == 0 {
		return os.OpenFile(name, flag|os.O_CREATE, 0o600) // again created, if it was just removed
	}
	if err != nil {
		return nil, err
	}
	if err := Keep(f, filepath.Dir(name)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
