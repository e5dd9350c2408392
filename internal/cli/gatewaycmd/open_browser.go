package gatewaycmd

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// openBrowser starts the user's browser at an address. It does not wait for the browser,
// which stays open when furl ends.
func openBrowser(address string) error {
	words := browserCommand(runtime.GOOS, os.Getenv, address)
	if words == nil {
		return errors.New("no display")
	}
	cmd := exec.Command(words[0], words[1:]...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// browserCommand returns the command that opens an address in the user's browser. It
// returns nil where xdg-open would start a browser in this terminal.
func browserCommand(system string, env func(string) string, address string) []string {
	switch {
	case system == "darwin":
		return []string{"open", address}
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", address}
	case env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" && env("WSL_DISTRO_NAME") == "" && env("BROWSER") == "":
		return nil
	}
	return []string{"xdg-open", address}
}
