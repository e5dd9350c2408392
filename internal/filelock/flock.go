//go:build darwin || linux || freebsd || netbsd || openbsd || dragonfly

// Package filelock locks files between processes.
package filelock

import (
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
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f.Close, nil
}
