package cmdline

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/furlhq/furl/internal/numbers"
)

// Strictly is the error of --strict for unreadable records, nil if there are none.
func Strictly(unreadable int) error {
	if unreadable == 0 {
		return nil
	}
	return fmt.Errorf("%s, and --strict is set", numbers.Count(unreadable, "unreadable record"))
}

// Stdin is the name of a recording from standard input.
const Stdin = "standard input"

// NoFile describes the error for a file or folder that does not exist. It returns other
// errors unchanged.
func NoFile(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file or directory; name a recording or a folder of recordings", path.Path)
	}
	return err
}
