package cli

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
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// serves says why furl serve would not start with a configuration, beyond what
// reading it tells: it makes a gateway of it, on a store in memory. Keys are in
// the environment of whoever starts the gateway and need not be in this shell;
// the note says which are not.
func serves(c *config.Config, file string) (note string, err error) {
	if err := checkPlace(c.Store); err != nil {
		return "", err
	}
	checked := *c
	s := &settings{
		config: &checked, listen: cmp.Or(c.Gateway.Listen, config.DefaultListen),
		log: slog.New(slog.DiscardHandler), providers: make(map[string]*upstream.Client),
	}
	if exposed := privateFiles(c, file); len(exposed) > 0 {
		return "", exposed[0]
	}
	if c.Gateway.Tenants {
		s.tenants = []byte("not that of the gateway")
	}
	var notes []string
	missing := func(setting, name string) bool {
		if name == "" || os.Getenv(name) != "" {
			return false
		}
		notes = append(notes, fmt.Sprintf("$%s, which %s names, holds no key here; furl serve does not start without", name, setting))
		return true
	}
	if missing("gateway.operator_key_env", c.Gateway.OperatorKeyEnv) {
		checked.Gateway.OperatorKeyEnv = ""
	}
	if missing("gateway.client_keys_env", c.Gateway.ClientKeysEnv) {
		checked.Gateway.ClientKeysEnv = ""
		if c.Gateway.TenantBy != "" && c.Gateway.ClientKeysFile == "" {
			checked.Gateway.TenantBy = string(gateway.TenantByCredential) // which needs none
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
	l, err := new(serveFlags).live(s, &checked, file)
	if err != nil {
		return "", err
	}
	store := inmem.New()
	defer func() { _ = store.Close() }() // nothing is in it
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
