package pgtest

import "syscall"

// ramFolder returns a folder in memory with room for a server, "" if there is
// none.
func ramFolder() string {
	const folder, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(folder, &fs) != nil || int64(fs.Bavail)*int64(fs.Bsize) < room {
		return ""
	}
	return folder
}
