//go:build unix

package private

import (
	"os"
	"syscall"

	"github.com/furlhq/furl/internal/visible"
)

// Check returns an *exposedError for a file that other users can read. As in OpenSSH,
// group and others may have no rights on a file of furl's user. A file of another user
// is one that systemd or Kubernetes provides to the service: the service reads it as a
// member of its group, so its group may have rights.
func Check(name string, info os.FileInfo) error {
	mode := info.Mode().Perm()
	others, cure := os.FileMode(0o077), "chmod 600 "+visible.QuoteArg(name)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		others, cure = 0o007, "chmod o= "+visible.QuoteArg(name)+" as its owner"
	}
	if mode&others == 0 {
		return nil
	}
	return &ExposedError{name, mode, cure}
}
