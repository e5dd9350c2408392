//go:build !unix

package clienttest

import "os/exec"

// killGroup does nothing: only the command itself is killed.
func killGroup(*exec.Cmd) {}
