//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

var errUnix = errors.New("servers for tests are started on Unix systems only; set " + Env)

func asServer(*exec.Cmd) error { return errUnix }

func give(string) error { return errUnix }

func kill(int) error { return errUnix }
