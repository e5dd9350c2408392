package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/setup"
	"github.com/furlhq/furl/internal/visible"
)

// AgentNames returns the names in --print-env.
func AgentNames() []string {
	return slices.DeleteFunc(agents.ClientNames(), func(name string) bool {
		c, _ := agents.ClientNamed(name)
		return !c.PrintsEnv()
	})
}

// EnvText is what --print-env prints: lines that a shell can evaluate.
func EnvText(c agents.Client, url string) string {
	var text strings.Builder
	if c.PrintFiles {
		for _, f := range c.Files {
			text.WriteString(setup.Snippet(f, agents.PartURL))
		}
	}
	text.WriteString(c.Notes)
	for _, variable := range c.Env {
		name, value, _ := strings.Cut(variable, "=")
		text.WriteString("export " + name + "=" + visible.QuoteArg(strings.ReplaceAll(value, "{url}", url)) + "\n")
	}
	return strings.ReplaceAll(text.String(), "{url}", url)
}

// agentOf finds the agent that a command starts, false if it is unknown.
func agentOf(args []string) (c agents.Client, ok bool) {
	command := CommandName(args[0])
	c, ok = agents.ClientNamed(command)
	return c, ok && slices.Contains(c.Programs(), command)
}

// CommandName is the name of a program without its folder and Windows extension.
func CommandName(path string) string {
	name := filepath.Base(path)
	for _, ext := range []string{".exe", ".cmd"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
