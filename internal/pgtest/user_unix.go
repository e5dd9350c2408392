//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns the user of a server when the tests run as root, which
// PostgreSQL refuses; nil for the user of the tests.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL refuses to run as root: create a user postgres")
}

// asServer makes a command run as the server's user, in its own process
// group, so that an interrupt from the keyboard reaches only the tests.
func asServer(cmd *exec.Cmd) error {
	who, err := unprivileged()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
	return err
}

// give changes the owner of a folder to the server's user.
func give(dir string) error {
	who, err := unprivileged()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(dir, int(who.Uid), int(who.Gid))
}

// kill ends a process immediately.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
