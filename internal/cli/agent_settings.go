package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/furlhq/furl/internal/agents"
)

// Agents have settings that beat the environment in which furl run starts them. furl
// reads them to say why requests do not reach it. It never changes them.

// maxSettings is how much of a settings file is read, in bytes.
const maxSettings = 1 << 20

// claudeSettings is what furl reads of a settings file of Claude Code.
type claudeSettings struct {
	from       string         // the file, or --settings
	Env        map[string]any `json:"env"`
	StatusLine *struct {
		Command string `json:"command"`
	} `json:"statusLine"`
}

// routeProblems says why the requests of an agent will not reach furl.
func (f *serveFlags) routeProblems(args []string) []string {
	c, ok := agentOf(args)
	switch {
	case !ok:
		return nil
	case c.Name == "claude":
		return claudeProblems(args)
	case c.Name == "codex":
		return codexProblems(args)
	case c.Name == "kilo" && os.Getenv("KILO_CONFIG_CONTENT") != "":
		return []string{"KILO_CONFIG_CONTENT is set, so furl run does not set it: furl serve --print-env kilo prints the base URLs to add to it"}
	case c.Manual && f.listen == freePort: // otherwise the user knows the address and may have set it
		return []string{fmt.Sprintf("%s does not read its base URL from the environment: start furl serve, and apply what furl serve --print-env %s prints", c.Title, c.Name)}
	}
	return nil
}

// freePort is the address at which furl run listens by default.
const freePort = "127.0.0.1:0"

// claudeProblems finds settings by which Claude Code sends its requests elsewhere.
func claudeProblems(args []string) (problems []string) {
	settings := readClaudeSettings(args)
	base := "ANTHROPIC_BASE_URL"
	if cloud, ok := claudeCloud(args); ok {
		base = cloud.Base
	}
	for _, s := range settings {
		url, ok := s.Env[base].(string)
		if !ok || url == "" {
			continue
		}
		url = withoutPassword(url)
		problems = append(problems, fmt.Sprintf("%s sets env.%s to %s, so Claude Code sends its requests there and not to furl; remove it, and to keep that provider start furl run --anthropic %s -- claude",
			s.from, base, url, quoteArg(url)))
		break // the first one wins
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} {
		if value, from := claudeVariable(settings, name); agents.On(value) {
			problems = append(problems, fmt.Sprintf("%s sets %s, so Claude Code does not use Anthropic's API and its requests do not reach furl", from, name))
		}
	}
	return problems
}

// claudeVariable returns the value of a variable of Claude Code, and where it is set.
// Settings have precedence over the environment.
func claudeVariable(settings []claudeSettings, name string) (value, from string) {
	for _, s := range settings {
		if v, ok := s.Env[name]; ok {
			return fmt.Sprint(v), s.from
		}
	}
	return os.Getenv(name), "the environment"
}

// claudeCloud returns the cloud that Claude Code is configured to use, if it sends
// requests there in the format of Anthropic's own API.
func claudeCloud(args []string) (agents.ClaudeCloud, bool) {
	if commandName(args[0]) == "claude" {
		settings := readClaudeSettings(args)
		for _, c := range agents.ClaudeClouds {
			if value, _ := claudeVariable(settings, c.Use); agents.On(value) {
				return c, true
			}
		}
	}
	return agents.ClaudeCloud{}, false
}

// cloudUpstream returns the base URL for a cloud of Claude Code.
func cloudUpstream(c agents.ClaudeCloud, args []string) string {
	settings := readClaudeSettings(args)
	return c.Upstream(func(name string) string { value, _ := claudeVariable(settings, name); return value })
}

// withoutPassword returns a URL with its password masked.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "an invalid URL"
	}
	return u.Redacted()
}

// readClaudeSettings reads the settings that Claude Code will use, those that win
// first. Files that are missing or invalid are skipped.
func readClaudeSettings(args []string) (list []claudeSettings) {
	add := func(from string, data []byte) {
		s := claudeSettings{}
		if json.Unmarshal(data, &s) == nil {
			s.from = from
			list = append(list, s)
		}
	}
	file := func(path string) { add(path, readSettings(path)) }
	file(filepath.Join(claudeManaged(), "managed-settings.json"))
	if own, ok := flagValue(args[1:], "--settings"); ok {
		if strings.HasPrefix(strings.TrimSpace(own), "{") {
			add("--settings", []byte(own))
		} else {
			file(own)
		}
	}
	file(filepath.Join(".claude", "settings.local.json"))
	file(filepath.Join(".claude", "settings.json"))
	if dir := claudeFolder(); dir != "" {
		file(filepath.Join(dir, "settings.json"))
	}
	return list
}

// claudeFolder is the folder of Claude Code's user settings, "" if unknown.
func claudeFolder() string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
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
	data, err := io.ReadAll(io.LimitReader(f, maxSettings))
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
func codexConfig() (values map[string]string, path string) {
	home := os.Getenv("CODEX_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, ""
		}
		home = filepath.Join(user, ".codex")
	}
	path = filepath.Join(home, "config.toml")
	return readTOML(readSettings(path)), path
}

// keptProvider returns the provider in Codex's configuration file whose address is
// that of OpenAI's APIs in the gateway, "" if there is none.
func keptProvider(openai string) string {
	c, _ := codexConfig()
	name := c["model_provider"]
	url := c["model_providers."+name+".base_url"]
	if url == "" || strings.TrimSuffix(url, "/") != strings.TrimSuffix(openai, "/") || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') // such a key is quoted
	}) {
		return ""
	}
	return name
}

// codexSignIn says that Codex has no credential although there is an API key. Its
// built-in provider reads OPENAI_API_KEY only when somebody signs in.
func codexSignIn() []string {
	c, path := codexConfig()
	store := c["cli_auth_credentials_store"]
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "auth.json"))
	if !errors.Is(err, fs.ErrNotExist) || store != "" && store != "file" || os.Getenv("CODEX_API_KEY") != "" || os.Getenv("OPENAI_API_KEY") == "" {
		return nil
	}
	return []string{"Codex is not signed in, and does not read OPENAI_API_KEY: sign in with codex login, or with that key: printenv OPENAI_API_KEY | codex login --with-api-key"}
}

// codexProblems finds a profile of Codex that chooses a provider. furl run sets
// model_provider, but a profile beats it.
func codexProblems(args []string) []string {
	c, path := codexConfig()
	profile, _ := flagValue(args[1:], "-p", "--profile")
	profile = cmp.Or(profile, c["profile"])
	chosen := c["profiles."+profile+".model_provider"]
	if profile == "" || chosen == "" || chosen == "openai" {
		return nil
	}
	return []string{fmt.Sprintf("profile %q in %s sets model_provider to %q, so Codex sends its requests there and not to furl; remove it from the profile%s",
		profile, path, chosen, codexProvider(c, chosen))}
}

// providerNotes says that furl run replaces the provider that Codex is configured for,
// or that Codex is not signed in. openai is the base URL of OpenAI's APIs.
func providerNotes(args []string, openai string) []string {
	if commandName(args[0]) != "codex" || keptProvider(openai) != "" {
		return nil
	}
	c, path := codexConfig()
	chosen := c["model_provider"]
	if chosen == "" || chosen == "openai" || chosen == "furl" {
		return codexSignIn()
	}
	return []string{fmt.Sprintf("%s sets model_provider to %q, which furl run replaces%s", path, chosen, codexProvider(c, chosen))}
}

// codexProvider says how to keep a provider of Codex with furl run, "" if its address
// is unknown.
func codexProvider(c map[string]string, name string) string {
	url := c["model_providers."+name+".base_url"]
	if url == "" {
		return ""
	}
	return "; to keep that provider start furl run --openai " + quoteArg(withoutPassword(url)) + " -- codex"
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
