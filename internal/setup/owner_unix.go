//go:build unix

package setup

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of the one that it replaces, so that root can
// change the files of a user.
func keepOwner(w *os.File, path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = w.Chown(int(st.Uid), int(st.Gid))
	}
}
