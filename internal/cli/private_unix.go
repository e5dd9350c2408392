//go:build unix

package cli

import (
	"os"
	"syscall"
)

// private returns an *exposedError for a file that others can read. As in
// OpenSSH no other user may have any right on a file of the user that furl runs as.
// A file of another user is a secret that a system hands to a service, as systemd
// and Kubernetes do: its group may read it, since that is how the service does.
func private(name string, info os.FileInfo) error {
	mode := info.Mode().Perm()
	others, cure := os.FileMode(0o077), "chmod 600 "+quoteArg(name)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		others, cure = 0o007, "chmod o= "+quoteArg(name)+" as its owner"
	}
	if mode&others == 0 {
		return nil
	}
	return &exposedError{name, mode, cure}
}
