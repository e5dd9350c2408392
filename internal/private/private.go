// Package private reads files with secrets, and refuses those that other users can read.
package private

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ExposedError is the error for a file with a secret that other users can read.
type ExposedError struct {
	Name string
	Mode os.FileMode
	Cure string // the command that corrects the mode
}

func (e *ExposedError) Error() string {
	return fmt.Sprintf("%s has mode %04o, so others can read it: run %s", e.Name, e.Mode, e.Cure)
}

// MaxSize limits the size of a file with secrets, in bytes.
const MaxSize = 1 << 20

// Read reads a file with a secret. If other users can read it, the error is an
// *exposedError.
func Read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := Check(name, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = errors.New("too large for a key file: at most 1 MB")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
