package tool

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	shellName    = "cmd"
	openNonblock = 0
)

// shell returns a command. cmd has rules of its own for quotes, so it gets the line
// unchanged.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CmdLine:       `cmd /s /c "` + line + `"`,
		CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP,
	}
	return cmd
}

// stopGroup ends the processes of a command that is running.
func stopGroup(p *os.Process) {
	_ = exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(p.Pid)).Run()
	_ = p.Kill()
}

// stopRest does nothing: Windows does not know the processes of a command that has
// ended.
func stopRest(*os.Process) {}

// keepOwner does nothing: new files have the user's rights.
func keepOwner(*os.File, fs.FileInfo) {}
