//go:build !linux

package pgtest

// ramFolder gives a folder in memory with room for a server: here there is
// none that every system has.
func ramFolder() string { return "" }
