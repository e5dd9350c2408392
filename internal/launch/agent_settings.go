package launch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/furlhq/furl/internal/agents"
)

// Agents have settings that beat the environment in which furl run starts them. furl
// reads them to say why requests do not reach it. It never changes them.

// MaxSettings is how much of a settings file is read, in bytes.
const MaxSettings = 1 << 20

// claudeSettings is what furl reads of a settings file of Claude Code.
type claudeSettings struct {
	from       string         // the file, or --settings
	managed    bool           // an administrator has made the file
	project    bool           // the file is in the agent's folder, and may be somebody else's
	Env        map[string]any `json:"env"`
	StatusLine *struct {
		Command string `json:"command"`
	} `json:"statusLine"`
}

// FreePort is the address at which furl run listens by default.
const FreePort = "127.0.0.1:0"

// claudeVariable returns the value of a variable of Claude Code, and where it is set.
// Settings have precedence over the environment.
func (p Place) claudeVariable(settings []claudeSettings, name string) (value, from string) {
	for _, s := range settings {
		if v, ok := s.Env[name]; ok {
			return fmt.Sprint(v), s.from
		}
	}
	return p.Getenv(name), "the environment"
}

// claudeCloud returns the cloud that these settings of Claude Code choose, if it sends
// requests there in the format of Anthropic's own API, and where it is chosen.
func (p Place) claudeCloud(settings []claudeSettings) (c *agents.ClaudeCloud, from string) {
	for i := range agents.ClaudeClouds {
		if value, from := p.claudeVariable(settings, agents.ClaudeClouds[i].Use); agents.On(value) {
			return &agents.ClaudeClouds[i], from
		}
	}
	return nil, ""
}

// WithoutPassword returns a URL with its password masked.
func WithoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "an invalid URL"
	}
	return u.Redacted()
}

// claudeSettings reads the settings that Claude Code will use, in order of precedence.
// Files that are missing or invalid are skipped.
func (p Place) claudeSettings(args []string) (list []claudeSettings) {
	add := func(from string, data []byte) *claudeSettings {
		s := claudeSettings{}
		if json.Unmarshal(data, &s) != nil {
			return &s
		}
		s.from = from
		list = append(list, s)
		return &list[len(list)-1]
	}
	file := func(path string) *claudeSettings { return add(path, readSettings(path)) }
	file(filepath.Join(claudeManaged(), "managed-settings.json")).managed = true
	if own, ok := flagValue(args[1:], "--settings"); ok {
		if strings.HasPrefix(strings.TrimSpace(own), "{") {
			add("--settings", []byte(own))
		} else {
			file(own)
		}
	}
	user := p.ClaudeFolder()
	if p.folder != "" {
		dir := filepath.Join(p.folder, ".claude")
		file(filepath.Join(dir, "settings.local.json")).project = !sameFolder(dir, user)
		file(filepath.Join(dir, "settings.json")).project = !sameFolder(dir, user)
	}
	if user != "" {
		file(filepath.Join(user, "settings.json"))
	}
	return list
}

// sameFolder reports whether two paths are the same folder.
func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// ClaudeFolder is the folder of Claude Code's user settings, "" if unknown.
func (p Place) ClaudeFolder() string {
	if dir := p.Getenv("CLAUDE_CONFIG_DIR"); dir != "" || p.Home == "" {
		return dir
	}
	return filepath.Join(p.Home, ".claude")
}

// claudeManaged is the folder of the settings that an administrator sets.
func claudeManaged() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	case "windows":
		return filepath.Join(cmp.Or(os.Getenv("ProgramFiles"), `C:\Program Files`), "ClaudeCode")
	}
	return "/etc/claude-code"
}

// readSettings reads the start of a file, nil if it cannot.
func readSettings(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSettings))
	if err != nil {
		return nil
	}
	return data
}

// flagValue returns the value of a flag in "--flag value" or "--flag=value".
func flagValue(args []string, names ...string) (string, bool) {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		for _, name := range names {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value, true
			}
			if arg == name && i+1 < len(args) {
				return args[i+1], true
			}
		}
	}
	return "", false
}

// codexConfig reads the strings of Codex's configuration file, and returns its path.
func (p Place) codexConfig() (values map[string]string, path string) {
	dir := p.Getenv("CODEX_HOME")
	if dir == "" {
		if p.Home == "" {
			return nil, ""
		}
		dir = filepath.Join(p.Home, ".codex")
	}
	path = filepath.Join(dir, "config.toml")
	return readTOML(readSettings(path)), path
}

// CodexProvider is the provider that Codex is configured to use, "" for its default.
func (p Place) CodexProvider() string {
	c, _ := p.codexConfig()
	return c["model_provider"]
}

// readTOML reads the strings of a TOML file by their dotted keys: enough to find a
// provider. It understands no multi-line values and no inline tables.
func readTOML(data []byte) map[string]string {
	values := make(map[string]string)
	table := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			table = strings.Trim(strings.ReplaceAll(name, `"`, ""), " ") + "."
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) < 2 || value[0] != '"' && value[0] != '\'' {
			continue
		}
		end := strings.IndexByte(value[1:], value[0])
		if end < 0 {
			continue
		}
		values[table+strings.Trim(strings.TrimSpace(key), `"`)] = value[1 : 1+end]
	}
	return values
}
