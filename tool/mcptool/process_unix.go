//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a process into a group of its own: an interrupt typed in the terminal
// does not reach it, and its children can be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a process and its children to end.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // it may have ended

// killGroup kills a process and its children. The group exists as long as one of them.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
