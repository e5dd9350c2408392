//go:build !linux

package pgtest

// ramFolder returns "": there is no such folder that all systems have.
func ramFolder() string { return "" }
