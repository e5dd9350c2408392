//go:build !linux

package procstat

func rss() int64 { return 0 }
