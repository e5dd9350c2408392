package cmdline

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/furlhq/furl/internal/visible"
)

// CreateFile opens a file or standard output for writing. A terminal gets printable text,
// pipes and files the original bytes. A file gets its name once it is complete, and is
// readable by its owner only. Call finish with the error of the writes.
func CreateFile(stdout io.Writer, name string, force bool) (w io.Writer, finish func(error) error, err error) {
	if name == "" || name == "-" {
		w, finish = Direct(stdout)
		return w, finish, nil
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !force {
		return nil, nil, fmt.Errorf("%s exists; overwrite it with --force", name)
	}
	if !Replaceable(name) {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, nil, err
		}
		w, flush := Direct(f)
		return w, func(err error) error { return errors.Join(flush(err), f.Close()) }, nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, nil, err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	return buffered, func(err error) error {
		if err == nil {
			err = buffered.Flush()
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.Rename(f.Name(), name)
		}
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is returned
		}
		return err
	}, nil
}

// Direct writes to an open file. A terminal gets printable text.
func Direct(to io.Writer) (w io.Writer, finish func(error) error) {
	if Width(to) == 0 {
		return to, func(err error) error { return err }
	}
	safe := &visible.Writer{W: to}
	return safe, func(err error) error { return cmp.Or(err, safe.Flush()) }
}

// Replaceable reports whether a new file can replace this one: it is a regular file or
// does not exist. Links, devices and pipes are written to directly.
func Replaceable(name string) bool {
	info, err := os.Lstat(name)
	return err != nil || info.Mode().IsRegular()
}
