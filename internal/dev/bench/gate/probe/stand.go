package main

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// setup are the settings of a case.
type setup struct {
	policy    string
	window    int  // that furl is configured with; 0: the model's
	real      int  // of the provider's models; 0: the model's
	recall    bool // offer recall tools
	dry       bool // every request is a dry run
	hour      bool // ask for cache entries of one hour under any policy
	summaries bool // write summaries
	transport bool // furl is the client's RoundTripper, and the gateway serves furl's API only
	sqlite    bool // the store is a file, which the program furl reads afterwards
	player    sim.Player
}

// under is furl, under test, over a store that outlives it.
type under struct {
	store     storage.Store
	path      string            // of the store's file, if it has one
	gateway   http.Handler      // furl's API, and requests to models
	transport http.RoundTripper // of the client, with setup.transport
	wait      func(context.Context)
	close     func()
}

// newProvider returns the provider of a case.
func newProvider(s *setup, st *stand) http.Handler {
	return sim.New(&sim.Options{Player: s.player, Window: s.real, Now: st.clock, Seed: 7, AnyField: true, NoAuth: true})
}

// openStore opens the store of a case in a folder.
func (u *under) openStore(s *setup, dir string) (err error) {
	u.close = func() {}
	if !s.sqlite {
		u.store = inmem.New()
		return nil
	}
	u.path = filepath.Join(dir, "furl.db")
	u.store, err = sqlite.Open(u.path, &sqlite.Options{Sync: sqlite.SyncNormal})
	return err
}

// begin starts furl over the store, in place of the one before.
func (u *under) begin(s *setup, st *stand, provider string) error {
	u.close()
	sessions, err := session.New(u.store, &session.Options{Window: s.window, Policy: s.policy, Now: st.clock, Recall: s.recall})
	if err != nil {
		return err
	}
	up, err := upstream.New(provider, nil)
	if err != nil {
		return err
	}
	hour := protocol.HourByPolicy
	if s.hour {
		hour = protocol.HourAlways
	}
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, &gateway.Options{
		Now: st.clock, Summaries: gateway.SummaryOptions{Off: !s.summaries}, Recall: s.recall, DryRun: s.dry, HourCache: hour,
	})
	if err != nil {
		return err
	}
	u.gateway, u.wait = g, g.Wait
	if s.transport {
		u.transport = furlhttp.New(sessions, &furlhttp.Options{Recall: s.recall, DryRun: s.dry, HourCache: hour})
	}
	u.close = func() {
		g.Close()
		up.Close()
	}
	return nil
}
