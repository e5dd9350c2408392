//go:build !unix

package mcptool

import "os/exec"

func ownGroup(*exec.Cmd) {}

// terminate does nothing: there is no request to end besides the end of the input.
func terminate(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended
