// Package agents knows where coding agents keep their sessions on this
// machine.
package agents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Home is where one agent keeps its sessions.
type Home struct {
	Agent string
	// Path is a folder or a file. Each of its elements may be a pattern, as in /home/u/data/*.db.
	Path string
}

// Homes lists where the known agents keep sessions, whether or not they are
// installed. Environment variables that move an agent's folder are honoured:
// CLAUDE_CONFIG_DIR, CODEX_HOME, XDG_DATA_HOME, PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR,
// GEMINI_CLI_HOME, QWEN_RUNTIME_DIR, QWEN_HOME, KIMI_CODE_HOME, CLINE_DIR,
// CLINE_DATA_DIR, CLINE_SESSION_DATA_DIR, CONTINUE_GLOBAL_DIR, FACTORY_HOME_OVERRIDE,
// COPILOT_HOME, NANOCODER_DATA_DIR, OPENCLAW_STATE_DIR, OPENCLAW_HOME, OPENCODE_DB, KILO_DB and CRUSH_GLOBAL_DATA, as those agents do.
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
	share := dir("XDG_DATA_HOME", ".local", "share")
	list := []Home{
		{"Claude Code", filepath.Join(dir("CLAUDE_CONFIG_DIR", ".claude"), "projects")},
		{"Codex", filepath.Join(dir("CODEX_HOME", ".codex"), "sessions")},
		{"opencode", databaseOf("OPENCODE_DB", filepath.Join(share, "opencode"), "opencode*.db")},
		{"opencode", filepath.Join(share, "opencode", "storage")}, // before February 2026
		{"Kilo", databaseOf("KILO_DB", filepath.Join(share, "kilo"), "kilo*.db")},
		{"pi", cmp.Or(expanded("PI_CODING_AGENT_SESSION_DIR", home), filepath.Join(cmp.Or(expanded("PI_CODING_AGENT_DIR", home), filepath.Join(home, ".pi", "agent")), "sessions"))},
		{"Gemini CLI", filepath.Join(dir("GEMINI_CLI_HOME"), ".gemini", "tmp")},
		{"Qwen Code", filepath.Join(qwenHome(home), "projects")},
		{"iFlow", filepath.Join(home, ".iflow", "projects")},
		{"Kimi Code", filepath.Join(dir("KIMI_CODE_HOME", ".kimi-code"), "sessions")},
		{"Cline", cmp.Or(os.Getenv("CLINE_SESSION_DATA_DIR"), filepath.Join(clineData(home), "sessions"))},
		{"Continue", filepath.Join(dir("CONTINUE_GLOBAL_DIR", ".continue"), "sessions")},
		{"Droid", filepath.Join(dir("FACTORY_HOME_OVERRIDE"), ".factory", "sessions")},
		{"Copilot CLI", filepath.Join(dir("COPILOT_HOME", ".copilot"), "session-state")},
		{"nanocoder", nanocoderSessions(home)},
		{"OpenClaw", filepath.Join(openclawState(home), "agents", "*", "agent", "openclaw-agent.sqlite")},
		{"OpenClaw", filepath.Join(openclawState(home), "agents", "*", "sessions")}, // before the database, and archives
		{"code-assistant", filepath.Join(dataDir(home), "code-assistant", "sessions")},
	}
	for _, path := range crushDatabases(home) {
		list = append(list, Home{"Crush", path})
	}
	for _, extension := range []struct{ agent, folder string }{
		{"Cline", "saoudrizwan.claude-dev"}, // until 2026
		{"Roo Code", "rooveterinaryinc.roo-cline"},
		{"Zoo Code", "zoocodeorganization.zoo-code"},
	} {
		for _, editor := range editors(home) {
			list = append(list, Home{extension.agent, filepath.Join(editor, "User", "globalStorage", extension.folder, "tasks")})
		}
	}
	return list
}

// crushDatabases are those of the projects that Crush lists, or else that of the current folder.
func crushDatabases(home string) (list []string) {
	data := os.Getenv("CRUSH_GLOBAL_DATA")
	if data == "" && runtime.GOOS == "windows" {
		data = filepath.Join(cmp.Or(os.Getenv("LOCALAPPDATA"), filepath.Join(home, "AppData", "Local")), "crush")
	}
	if data == "" {
		data = filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share")), "crush")
	}
	var known struct {
		Projects []struct {
			Folder string `json:"data_dir"`
		} `json:"projects"`
	}
	if text, err := os.ReadFile(filepath.Join(data, "projects.json")); err == nil {
		_ = json.Unmarshal(text, &known) // without it, only the current folder is known
	}
	for _, p := range known.Projects {
		if filepath.IsAbs(p.Folder) && !strings.Contains(p.Folder, "*") {
			list = append(list, filepath.Join(p.Folder, "crush.db"))
		}
	}
	if wd, err := os.Getwd(); err == nil && len(list) == 0 && !strings.Contains(wd, "*") {
		list = append(list, filepath.Join(wd, ".crush", "crush.db"))
	}
	return list
}

// editors are patterns for the folders in which VS Code, and the editors that were derived from it, keep the data
// of extensions: on this machine, and as the server of an editor on another.
func editors(home string) []string {
	data := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		data = dataDir(home)
	}
	return []string{filepath.Join(data, "*"), filepath.Join(home, ".*-server*", "data")}
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

// qwenHome is the folder of Qwen Code's data.
func qwenHome(home string) string {
	return cmp.Or(os.Getenv("QWEN_RUNTIME_DIR"), os.Getenv("QWEN_HOME"), filepath.Join(home, ".qwen"))
}

// databaseOf is the database that a variable names, relative to a folder, or else a pattern for those in the folder.
func databaseOf(variable, folder, pattern string) string {
	name := os.Getenv(variable)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, cmp.Or(name, pattern))
}

// clineData is Cline's folder for data.
func clineData(home string) string {
	return cmp.Or(os.Getenv("CLINE_DATA_DIR"), filepath.Join(cmp.Or(os.Getenv("CLINE_DIR"), filepath.Join(home, ".cline")), "data"))
}

// openclawState is the folder of OpenClaw's data. Each named profile has its own.
func openclawState(home string) string {
	folder := func(variable string) string {
		if dir := expanded(variable, home); dir != "undefined" && dir != "null" {
			return dir
		}
		return ""
	}
	return cmp.Or(folder("OPENCLAW_STATE_DIR"), filepath.Join(cmp.Or(folder("OPENCLAW_HOME"), home), ".openclaw*"))
}

// expanded returns the folder that a variable names, with the home folder for ~, as pi and OpenClaw do.
func expanded(variable, home string) string {
	dir := strings.TrimSpace(os.Getenv(variable))
	if dir == "~" || strings.HasPrefix(dir, "~/") || strings.HasPrefix(dir, `~\`) {
		return home + dir[1:]
	}
	return dir
}

// nanocoderSessions is the folder of nanocoder's sessions. It follows XDG_DATA_HOME on all systems.
func nanocoderSessions(home string) string {
	if v := os.Getenv("NANOCODER_DATA_DIR"); v != "" {
		return filepath.Join(v, "sessions")
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), dataDir(home)), "nanocoder", "sessions")
}

// Places returns the folders and files of Homes that exist.
func Places() []string {
	var out []string
	for _, h := range Homes() {
		out = append(out, h.places()...)
	}
	return out
}

// Known lists the agents of Homes for people.
func Known() string {
	var names []string
	for _, h := range Homes() {
		if !slices.Contains(names, h.Agent) {
			names = append(names, h.Agent)
		}
	}
	return strings.Join(names, ", ")
}

// Searched lists the places of Homes for people.
func Searched() string {
	var list []string
	for _, h := range Homes() {
		list = append(list, fmt.Sprintf("%s (%s)", h.Path, h.Agent))
	}
	return strings.Join(list, ", ")
}

func (h Home) places() []string {
	found := []string{filepath.VolumeName(h.Path)}
	for i, element := range strings.Split(filepath.ToSlash(h.Path[len(found[0]):]), "/") {
		if i == 0 && element == "" {
			found[0] += string(filepath.Separator)
			continue
		}
		found = within(found, element)
	}
	return found
}

// within returns the entries of folders with a name, or whose names match a pattern.
func within(folders []string, element string) (found []string) {
	for _, folder := range folders {
		names := []string{element}
		if strings.Contains(element, "*") {
			names = nil
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if ok, _ := filepath.Match(element, e.Name()); ok {
					names = append(names, e.Name())
				}
			}
		}
		for _, name := range names {
			if path := filepath.Join(folder, name); exists(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// exists reports whether there is such a file, or may be: the error of reading it then says why it cannot be read.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || errors.Is(err, fs.ErrPermission)
}
