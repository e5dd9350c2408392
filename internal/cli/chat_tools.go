package cli

import (
	"net/http"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/tool/mcptool"
)

// mcpServers returns the MCP servers of a configuration with their variables replaced.
// An error names the variables that are not set.
func mcpServers(c *config.Config) ([]mcptool.Server, error) {
	var list []mcptool.Server
	for _, configured := range c.MCPServers {
		s, err := configured.Expanded()
		if err != nil {
			return nil, err
		}
		server := mcptool.Server{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir, URL: s.URL,
			StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout,
		}
		if len(s.Headers) > 0 {
			server.Header = make(http.Header)
			for name, value := range s.Headers {
				server.Header.Set(name, value)
			}
		}
		if err := server.Check(); err != nil {
			return nil, err
		}
		list = append(list, server)
	}
	return list, nil
}
