package setup

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/furlhq/furl/internal/agents"
)

// Snippet returns the settings of a part as comments for a shell, as they are in a file
// that has nothing else. {url} stays as it is.
func Snippet(f agents.ConfigFile, part agents.Part) string {
	path := f.Paths()[0]
	d, err := parse(path, nil)
	settings := f.Settings
	if filepath.Ext(path) == ".toml" {
		settings = leaves(settings)
	}
	for _, s := range settings {
		if s.Part == part && err == nil {
			_, _, err = d.apply(s.Path, s.Resolve("{url}", []string{agents.MCPName, "mcp"}))
		}
	}
	if err != nil {
		return "" // no setting is invalid, see TestSnippets
	}
	var b strings.Builder
	b.WriteString("# In " + Short(path) + ":\n")
	for line := range strings.Lines(string(d.data)) {
		b.WriteString(strings.TrimRight("#   "+line, " \n") + "\n")
	}
	return b.String()
}

// Short returns a path with "~" for the user's home folder.
func Short(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}
