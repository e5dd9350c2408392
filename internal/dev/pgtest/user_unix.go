//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
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

// asWatchdog puts a command into its own process group, so that an interrupt from the
// keyboard does not end it.
func asWatchdog(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// pause stops a process and its children, and returns their ids.
func pause(pid int) ([]int, error) {
	// The first process is stopped before its children are listed, so that it
	// starts no more.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	pids := []int{pid}
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // fails without children
	for field := range strings.FieldsSeq(string(out)) {
		child, err := strconv.Atoi(field)
		if err == nil && child > 1 && syscall.Kill(child, syscall.SIGSTOP) == nil {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// unpause continues stopped processes.
func unpause(pids []int) error {
	var first error
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && err != syscall.ESRCH && first == nil {
			first = err
		}
	}
	return first
}

// kill ends a process immediately.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
