package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// live is what a configuration and flags come to that a running gateway can
// change.
type live struct {
	sessions  *session.Options
	up        gateway.Upstreams
	options   gateway.Options
	retention session.Retention
	level     slog.Level
}

// keys are those that the gateway verifies.
func (l *live) keys() gatewayKeys { return gatewayKeys{l.options.ClientKeys, l.options.OperatorKeys} }

// live reads it. Providers whose address stays keep their connections.
func (f *serveFlags) live(s *settings, c *config.Config, file string) (*live, error) {
	l := &live{retention: session.Retention{Age: c.Retention.Age, Size: c.Retention.Size}}
	level := cmp.Or(f.level, c.Gateway.Log, f.usual, "info")
	if err := l.level.UnmarshalText([]byte(level)); err != nil {
		return nil, badUsage("--log %s: it is debug, info, warn or error", level)
	}
	var err error
	if l.sessions, err = f.sessionOptions(c, file); err != nil {
		return nil, err
	}
	l.sessions.Policy = cmp.Or(f.policy, l.sessions.Policy)
	l.sessions.Refuse, l.sessions.Logger = c.Gateway.Refuse, s.log
	if f.window != "" {
		if l.sessions.Window, err = parseTokens(f.window); err != nil {
			return nil, badUsage("--window %s: %w", f.window, err)
		}
	}
	if l.up.Anthropic, err = s.provider(cmp.Or(f.anthropic, c.Gateway.Anthropic, anthropicAddress)); err != nil {
		return nil, meant(f.anthropic, fmt.Errorf("anthropic: %w", err))
	}
	if l.up.OpenAI, err = s.provider(cmp.Or(f.openai, c.Gateway.OpenAI, openaiAddress)); err != nil {
		return nil, meant(f.openai, fmt.Errorf("openai: %w", err))
	}
	if l.options, err = f.gatewayOptions(s, c, file); err != nil {
		return nil, err
	}
	if f.policy != "" {
		if _, err := c.Set().Policy(f.policy, policy.Settings{}); err != nil {
			return nil, usageError{err}
		}
	}
	return l, meant(f.listen, gateway.CheckListen(s.listen, l.options.ClientKeys))
}

// meant makes an error one of the command line, if it was a flag's value that
// is wrong and not the configuration's.
func meant(flag string, err error) error {
	if err == nil || flag == "" {
		return err
	}
	return usageError{err}
}

func (f *serveFlags) gatewayOptions(s *settings, c *config.Config, file string) (gateway.Options, error) {
	o := gateway.Options{
		Finish: finishFor,
		Hosts:  c.Gateway.Hosts, Origins: c.Gateway.Origins, MaxBody: c.Gateway.MaxBody, MaxRequests: c.Gateway.MaxRequests,
		DryRun: f.dryRun || c.Gateway.DryRun, Recall: f.recall || c.Gateway.Recall, Version: version(), Logger: s.log,
		Summaries:    gateway.SummaryOptions{Model: c.Summaries.Model, AtOnce: c.Summaries.AtOnce, Timeout: c.Summaries.Timeout},
		TenantSecret: s.tenants, TenantBy: gateway.TenantBy(c.Gateway.TenantBy),
		Tracer: s.traces.tracer(),
		Reload: func(ctx context.Context) (*gateway.Reloaded, error) { return f.reload(ctx, s) },
	}
	keys, err := keysOf(c, file)
	o.ClientKeys, o.OperatorKeys = keys.clients, keys.operators
	return o, err
}

// provider gives the client of an address, the same one for the same address.
func (s *settings) provider(address string) (*upstream.Client, error) {
	if address == "none" {
		return nil, nil
	}
	if c := s.providers[address]; c != nil {
		return c, nil
	}
	c, err := upstream.New(address, &upstream.Options{Logger: s.log})
	if err != nil {
		return nil, err
	}
	s.providers[address] = c
	return c, nil
}

// reload reads the configuration anew. If there is anything wrong with it, all
// stays as it is. What is under way goes on as it began.
func (f *serveFlags) reload(ctx context.Context, s *settings) (*gateway.Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	done, err := f.reread(s)
	if err != nil {
		s.log.ErrorContext(ctx, "the configuration was not read anew; the settings stay as they were", "error", err)
		return nil, err
	}
	s.log.InfoContext(ctx, "the configuration was read anew", "file", done.File, "changed", strings.Join(done.Changed, " "), "need_restart", strings.Join(done.NeedRestart, " "))
	return done, nil
}

func (f *serveFlags) reread(s *settings) (*gateway.Reloaded, error) {
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return nil, err
	}
	l, err := f.live(s, c, file)
	if err != nil {
		return nil, err
	}
	next, err := s.gateway.Load().With(l.up, &l.options)
	if err != nil {
		return nil, err
	}
	if err := s.sessions.Configure(l.sessions); err != nil {
		return nil, err
	}
	s.gateway.Store(next)
	s.level.Set(l.level)
	s.retention.Store(&l.retention)
	done := &gateway.Reloaded{File: file}
	done.Changed, done.NeedRestart = config.Changes(s.config, c)
	keys := l.keys()
	for _, file := range []struct {
		setting, name string
		was, is       []string // what is in it
	}{
		{"gateway.client_keys_file", c.Gateway.ClientKeysFile, s.keys.clients, keys.clients},
		{"gateway.operator_key_file", c.Gateway.OperatorKeyFile, s.keys.operators, keys.operators},
	} {
		if file.name != "" && !slices.Equal(file.was, file.is) && !slices.Contains(done.Changed, file.setting) {
			done.Changed = append(done.Changed, file.setting)
		}
	}
	s.keys = keys
	if s.tenants != nil && s.keyless && len(keys.clients) > 0 && c.Gateway.TenantBy == "" {
		done.NeedRestart = append(done.NeedRestart, "gateway.tenant_by") // its default is another now
	}
	done.Changed, done.NeedRestart = append([]string{}, done.Changed...), append([]string{}, done.NeedRestart...)
	// What needs a restart stays unlike the file until there is one.
	s.config = c.Started(s.config)
	return done, nil
}

// ServeHTTP serves by the settings that hold now.
func (s *settings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.gateway.Load().ServeHTTP(w, r)
}

// hangups gives a channel with each SIGHUP, and what ends that. In a terminal
// the signal means that the terminal has gone, and ends the program as ever.
func (f *serveFlags) hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	if f.running || term.IsTerminal(int(os.Stdin.Fd())) {
		return c, func() {}
	}
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// onHangup reads the configuration anew with each hangup, until ctx ends.
func (f *serveFlags) onHangup(ctx context.Context, s *settings, hangups <-chan os.Signal) error {
	for {
		select {
		case <-hangups:
			_, _ = f.reload(ctx, s) // which logs what is wrong
		case <-ctx.Done():
			return nil
		}
	}
}
