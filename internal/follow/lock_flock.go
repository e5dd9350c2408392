//go:build darwin || linux || freebsd || netbsd || openbsd || dragonfly

package follow

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lock takes the lock of a file until unlock is called or the process ends. If another
// process has it, the error is errLocked.
func lock(name string) (unlock func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
