// Package agents knows where coding agents keep their sessions on this
// machine.
package agents

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
)

// Home is where one agent keeps its sessions.
type Home struct {
	Agent  string
	Folder string
}

// Homes lists where the known agents keep sessions, whether or not they are
// installed. Environment variables that move an agent's folder are honoured:
// CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_DATA_HOME, PI_CODING_AGENT_DIR,
// GEMINI_CLI_HOME and NANOCODER_DATA_DIR, as those agents document them.
func Homes() []Home {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	dir := func(env string, fallback ...string) string {
		if v := os.Getenv(env); v != "" {
			return v
		}
		return filepath.Join(append([]string{home}, fallback...)...)
	}
	return []Home{
		{"Claude Code", filepath.Join(dir("CLAUDE_CONFIG_DIR", ".claude"), "projects")},
		{"Codex", filepath.Join(dir("CODEX_HOME", ".codex"), "sessions")},
		{"opencode", filepath.Join(dir("XDG_DATA_HOME", ".local", "share"), "opencode")},
		{"pi", filepath.Join(dir("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions")},
		{"Gemini CLI", filepath.Join(dir("GEMINI_CLI_HOME"), ".gemini", "tmp")},
		{"nanocoder", nanocoderSessions(home)},
		{"code-assistant", filepath.Join(dataDir(home), "code-assistant", "sessions")},
	}
}

// dataDir is the folder in which programs keep their data.
func dataDir(home string) string {
	switch runtime.GOOS {
	case "windows":
		return cmp.Or(os.Getenv("APPDATA"), filepath.Join(home, "AppData", "Roaming"))
	case "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	return cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
}

// nanocoderSessions is the folder of nanocoder's sessions. It follows XDG_DATA_HOME on all systems.
func nanocoderSessions(home string) string {
	if v := os.Getenv("NANOCODER_DATA_DIR"); v != "" {
		return filepath.Join(v, "sessions")
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), dataDir(home)), "nanocoder", "sessions")
}

// Folders are those of Homes that exist.
func Folders() []string {
	var out []string
	for _, h := range Homes() {
		if fi, err := os.Stat(h.Folder); err == nil && fi.IsDir() {
			out = append(out, h.Folder)
		}
	}
	return out
}
