//go:build unix

package tool

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

const (
	shellName = "sh"
	// openNonblock keeps the opening of a pipe from waiting for its other end.
	openNonblock = syscall.O_NONBLOCK
)

// shell returns a command in a process group of its own, without the terminal.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// stopGroup ends the processes of a command.
func stopGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// stopRest ends what a command that has ended has left in the background.
func stopRest(p *os.Process) { stopGroup(p) }

// keepOwner gives a file the owner of the one that it replaces, so that root can
// change the files of a user.
func keepOwner(w *os.File, of fs.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = w.Chown(int(st.Uid), int(st.Gid))
	}
}
