//go:build !unix

package eval

import (
	"os"
	"os/exec"
)

// ownSession does nothing: there are no process groups.
func ownSession(*exec.Cmd) {}

// terminate kills the command. Its children continue.
func terminate(p *os.Process) error { return p.Kill() }

func killGroup(*os.Process) {}

func exitOf(s *os.ProcessState) int { return s.ExitCode() }
