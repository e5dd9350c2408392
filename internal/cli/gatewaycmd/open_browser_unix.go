//go:build unix

package gatewaycmd

import (
	"os/exec"
	"syscall"
)

// detach keeps signals of this terminal, such as Ctrl-C, from a command.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
