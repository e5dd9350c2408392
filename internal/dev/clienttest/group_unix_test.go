//go:build unix

package clienttest

import (
	"os/exec"
	"syscall"
)

// killGroup makes a command start a process group, which is killed as a whole when
// its context ends.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
