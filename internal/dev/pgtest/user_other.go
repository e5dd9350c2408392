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

func asWatchdog(*exec.Cmd) error { return nil }

func pause(int) ([]int, error) { return nil, errors.New("processes cannot be stopped on this system") }

func unpause([]int) error { return nil }
