package cmdline

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

// MaxPrivate limits the size of a file with secrets, in bytes.
const MaxPrivate = 1 << 20

// ReadPrivate reads a file with a secret. If other users can read it, the error is an
// *exposedError.
func ReadPrivate(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := CheckPrivate(name, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxPrivate+1))
	if err == nil && len(data) > MaxPrivate {
		err = errors.New("too large for a key file: at most 1 MB")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
