//go:build linux || darwin

package index

import (
	"io/fs"
	"syscall"
	"time"
)

// inode tells a file from another one with its name, and from what it was before a change whose time was set
// back.
type inode struct {
	device, number uint64
	changed        int64 // in nanoseconds
}

func inodeOf(info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino, time.Unix(changeTime(st)).UnixNano()}
}
