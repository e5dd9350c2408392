package serving

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// Check returns the error with which furl serve would fail to start with a valid
// configuration file: it creates a gateway with a store in memory. The note lists
// environment variables with keys that are not set in this shell. They are needed
// only where the gateway starts.
func Check(c *config.Config, file string) (note string, err error) {
	if err := workspace.CheckPlace(c.Store); err != nil {
		return "", err
	}
	checked := *c
	s := &Running{
		Config: &checked, listen: cmp.Or(c.Gateway.Listen, config.DefaultListen),
		log: slog.New(slog.DiscardHandler), providers: make(map[string]*upstream.Client),
	}
	if exposed := PrivateFiles(c, file); len(exposed) > 0 {
		return "", exposed[0]
	}
	if err := new(Gateway).useTLS(s, c, file); err != nil {
		return "", err
	}
	if c.Gateway.Tenants {
		s.Tenants = []byte("not the secret of the gateway")
	}
	var notes []string
	missing := func(setting, name string) bool {
		if name == "" || os.Getenv(name) != "" {
			return false
		}
		notes = append(notes, fmt.Sprintf("$%s (%s) is not set in this shell; furl serve requires it", name, setting))
		return true
	}
	for _, server := range c.MCPServers {
		for _, name := range server.Missing() {
			notes = append(notes, fmt.Sprintf("$%s (mcp_servers.%s) is not set in this shell; the MCP server requires it", name, server.Name))
		}
	}
	if missing("gateway.operator_key_env", c.Gateway.OperatorKeyEnv) {
		checked.Gateway.OperatorKeyEnv = ""
	}
	if missing("gateway.client_keys_env", c.Gateway.ClientKeysEnv) {
		checked.Gateway.ClientKeysEnv = ""
		if c.Gateway.TenantBy != "" && c.Gateway.ClientKeysFile == "" {
			checked.Gateway.TenantBy = string(gateway.TenantByCredential) // needs no client keys
		}
		_, port, err := net.SplitHostPort(s.listen)
		if err != nil {
			return "", fmt.Errorf("listen on %q: %w", s.listen, err)
		}
		s.listen = net.JoinHostPort("127.0.0.1", port)
	}
	defer func() {
		for _, up := range s.providers {
			up.Close()
		}
	}()
	l, err := new(Gateway).live(s, &checked, file)
	if err != nil {
		return "", err
	}
	store := inmem.New()
	defer func() { _ = store.Close() }() // it is empty
	sessions, err := session.New(store, l.sessions)
	if err != nil {
		return "", err
	}
	g, err := gateway.New(sessions, l.up, &l.options)
	if err != nil {
		return "", err
	}
	g.Close()
	return strings.Join(notes, "; "), nil
}
