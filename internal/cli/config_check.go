package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"

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
	if name := c.Gateway.ClientKeysEnv; name != "" && os.Getenv(name) == "" {
		note = fmt.Sprintf("$%s, which gateway.client_keys_env names, holds no key here; furl serve does not start without", name)
		checked.Gateway.ClientKeysEnv = ""
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
	return note, nil
}
