//go:build !unix

package gatewaycmd

import "os/exec"

// detach does nothing: the command that opens an address ends at once.
func detach(*exec.Cmd) {}
