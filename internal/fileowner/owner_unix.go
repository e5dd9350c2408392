//go:build darwin || linux || freebsd || netbsd || openbsd || dragonfly

package fileowner

import (
	"os"
	"syscall"
)

// Keep gives an open file the owner and group of another file or folder, if root runs the
// process. Otherwise it does nothing.
func Keep(f *os.File, of string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(of)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}
