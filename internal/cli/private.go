package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// exposedError is the error for a file with a secret that other users can read.
type exposedError struct {
	name string
	mode os.FileMode
	cure string // the command that corrects the mode
}

func (e *exposedError) Error() string {
	return fmt.Sprintf("%s has mode %04o, so others can read it: run %s", e.name, e.mode, e.cure)
}

// maxPrivate limits the size of a file with secrets, in bytes.
const maxPrivate = 1 << 20

// readPrivate reads a file with a secret. If other users can read it, the error is an
// *exposedError.
func readPrivate(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(name, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPrivate+1))
	if err == nil && len(data) > maxPrivate {
		err = errors.New("too large for a key file: at most 1 MB")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
