//go:build darwin || linux || freebsd || netbsd || openbsd || dragonfly

// Package filelock locks files between processes.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/furlhq/furl/internal/fileowner"
)

// Lock creates a file if needed, and waits for its lock. The process has the lock until it
// calls unlock or ends.
func Lock(name string) (unlock func() error, err error) {
	f, err := fileowner.Open(name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return f.Close, nil
}

// Share creates a file if needed, and takes a lock that several processes can have. alone
// reports whether no other had it. A process that comes later has been told that it is not
// alone. The process has the lock until it calls unlock or ends.
func Share(name string) (alone bool, unlock func() error, err error) {
	f, err := fileowner.Open(name, os.O_RDWR)
	if err != nil {
		return false, nil, err
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if alone = err == nil; !alone {
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil, err
		}
		// flock has closed the file.
		if f, err = fileowner.Open(name, os.O_RDWR); err != nil {
			return false, nil, err
		}
	}
	// Another process may have the exclusive lock in between, and for a moment only.
	if err := flock(f, syscall.LOCK_SH); err != nil {
		return false, nil, err
	}
	return alone, f.Close, nil
}

// flock locks a file, and closes it if that fails.
func flock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how); err {
		case nil:
			return nil
		case syscall.EINTR:
		default:
			_ = f.Close()
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
