package index

import "syscall"

// changeTime returns when a file or its metadata was changed, in seconds and nanoseconds.
func changeTime(st *syscall.Stat_t) (seconds, nanoseconds int64) { return st.Ctimespec.Unix() }
