//go:build !(darwin || linux || freebsd || netbsd || openbsd || dragonfly)

// Package filelock locks files between processes.
package filelock

// Lock does nothing: this system has no lock that ends with the process. Run one command
// at a time.
func Lock(string) (unlock func() error, err error) { return func() error { return nil }, nil }

// Share does nothing, and cannot know about other processes.
func Share(string) (alone bool, unlock func() error, err error) {
	return false, func() error { return nil }, nil
}
