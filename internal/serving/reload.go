package serving

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// live has the settings that a running gateway can change, from a configuration file
// and flags.
type live struct {
	sessions  *session.Options
	up        gateway.Upstreams
	options   gateway.Options
	retention session.Retention
	level     slog.Level
}

// keys returns the keys that the gateway accepts.
func (l *live) keys() gatewayKeys { return gatewayKeys{l.options.ClientKeys, l.options.OperatorKeys} }

// live computes the settings. Providers with the same address keep their connections.
func (f *Gateway) live(s *Running, c *config.Config, file string) (*live, error) {
	l := &live{retention: RetentionOf(c)}
	level := cmp.Or(f.Level, c.Gateway.Log, f.Usual, "info")
	if err := l.level.UnmarshalText([]byte(level)); err != nil {
		return nil, usage.Errorf("invalid log level %q: choose debug, info, warn or error", level)
	}
	var err error
	if l.sessions, err = f.SessionOptions(c, file); err != nil {
		return nil, err
	}
	l.sessions.Policy = cmp.Or(f.Policy, l.sessions.Policy)
	l.sessions.Settings.Off = l.sessions.Settings.Off || f.Playback
	l.sessions.LastWindow = f.Only // of a gateway, whose windows are not known here
	l.sessions.Refuse, l.sessions.Logger = c.Gateway.Refuse, s.log
	if f.Window != "" {
		if l.sessions.Window, err = numbers.ParseTokens(f.Window); err != nil {
			return nil, usage.Errorf("--window %s: %w", f.Window, err)
		}
	}
	if l.up.Anthropic, err = s.provider(cmp.Or(f.Anthropic, c.Gateway.Anthropic, workspace.AnthropicAddress)); err != nil {
		return nil, blame(f.Anthropic, fmt.Errorf("anthropic: %w", err))
	}
	if l.up.OpenAI, err = s.provider(f.openAIOf(c)); err != nil {
		return nil, blame(f.Openai, fmt.Errorf("openai: %w", err))
	}
	if l.up.Gemini, err = s.gemini(f.geminiOf(c)); err != nil {
		return nil, blame(f.Gemini, fmt.Errorf("gemini: %w", err))
	}
	if l.up.ChatGPT, err = s.chatGPT(f.chatGPTOf(c)); err != nil {
		return nil, blame(f.ChatGPT, fmt.Errorf("chatgpt: %w", err))
	}
	if l.up == (gateway.Upstreams{}) && !f.Only {
		return nil, gateway.ErrNoUpstream
	}
	if l.options, err = f.gatewayOptions(s, c, file); err != nil {
		return nil, err
	}
	if f.Policy != "" {
		if _, err := c.Set().Policy(f.Policy, policy.Settings{}); err != nil {
			return nil, usage.Wrap(err)
		}
	}
	return l, blame(f.Listen, gateway.CheckListen(s.listen, &l.options))
}

// blame makes an error a usage error if the value is that of a flag and not of the
// configuration file.
func blame(flag string, err error) error {
	if err == nil || flag == "" {
		return err
	}
	return usage.Wrap(err)
}

func (f *Gateway) gatewayOptions(s *Running, c *config.Config, file string) (gateway.Options, error) {
	o := gateway.Options{
		Finish: c.Gateway.Finish,
		Hosts:  c.Gateway.Hosts, Origins: c.Gateway.Origins, MaxBody: c.Gateway.MaxBody, MaxRequests: c.Gateway.MaxRequests,
		PassThreads: c.Gateway.Threads == "pass", HoldBilling: c.Gateway.BillingHeader == "hold",
		DryRun: f.DryRun || c.Gateway.DryRun, Recall: (f.Recall || c.Gateway.Recall) && !f.Playback, Version: workspace.Version(), Logger: s.log,
		Summaries: gateway.SummaryOptions{Model: c.Summaries.Model, Key: c.Summaries.Key(), AtOnce: c.Summaries.AtOnce, Timeout: c.Summaries.Timeout},
		KeepAlive: c.Gateway.KeepAlive, HourCache: HourCache(c.Gateway.HourCache),
		TenantSecret: s.Tenants, TenantBy: gateway.TenantBy(c.Gateway.TenantBy),
		AuditRequired: s.Config.Audit.Required, Tracer: s.traces.tracer(), Certificate: s.certificate(),
		Reload: func(ctx context.Context) (*gateway.Reloaded, error) { return f.reload(ctx, s) },
	}
	if workspace.AsksModels(c) {
		o.Models = s.models
	}
	if s.audit != nil {
		o.Audit = s.audit
	}
	if f.HasPage(c) {
		o.Page = s.page
	}
	if err := f.accessOptions(&o, c, file); err != nil {
		return o, err
	}
	keys, err := KeysOf(c, file)
	if err != nil {
		return o, err
	}
	o.ClientKeys, o.OperatorKeys = keys.clients, keys.operators
	o.Shared, err = f.shared(s, c, file, &o)
	return o, err
}

// HasPage reports whether the gateway serves the page.
func (f *Gateway) HasPage(c *config.Config) bool {
	return f.Only || !f.NoPage && (c.Gateway.Page == nil || *c.Gateway.Page)
}

// openAIOf returns the base address of OpenAI's APIs.
func (f *Gateway) openAIOf(c *config.Config) string {
	return cmp.Or(f.Openai, c.Gateway.OpenAI, workspace.OpenaiAddress)
}

// geminiOf returns the address of the provider of Gemini's format, or none.
func (f *Gateway) geminiOf(c *config.Config) string {
	return cmp.Or(f.Gemini, c.Gateway.Gemini, workspace.GeminiAddress)
}

// chatGPTOf returns the base address for logins with ChatGPT. If another provider than
// OpenAI is configured, there is none, unless it is set: requests are then meant to
// reach neither OpenAI nor ChatGPT.
func (f *Gateway) chatGPTOf(c *config.Config) string {
	usual := "none"
	if u, err := url.Parse(f.openAIOf(c)); err == nil && "https://"+u.Host == workspace.OpenaiAddress {
		usual = workspace.ChatGPTAddress
	}
	return cmp.Or(f.ChatGPT, c.Gateway.ChatGPT, usual)
}

// provider returns the client for an address, the same one for the same address.
func (s *Running) provider(address string) (*upstream.Client, error) {
	return s.client(address, address, &upstream.Options{Logger: s.log})
}

// gemini returns the client for a provider of Gemini's format at an address, which gets
// credentials in Google's headers.
func (s *Running) gemini(address string) (*upstream.Client, error) {
	return s.client(address, upstream.Google+" "+address, &upstream.Options{Logger: s.log, Vendor: upstream.Google})
}

// chatGPT returns the client for logins with ChatGPT at an address.
func (s *Running) chatGPT(address string) (*upstream.Client, error) {
	return s.client(address, upstream.ChatGPT+" "+address, &upstream.Options{Logger: s.log, Vendor: upstream.ChatGPT, NoVersion: true})
}

func (s *Running) client(address, key string, o *upstream.Options) (*upstream.Client, error) {
	if address == "none" {
		return nil, nil
	}
	if c := s.providers[key]; c != nil {
		return c, nil
	}
	c, err := upstream.New(address, o)
	if err != nil {
		return nil, err
	}
	s.providers[key] = c
	return c, nil
}

// reload reads the configuration file again. After an error, all settings stay.
// Requests in progress keep their settings.
func (f *Gateway) reload(ctx context.Context, s *Running) (*gateway.Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	done, err := f.reread(s)
	if err != nil {
		s.log.ErrorContext(ctx, "configuration not reloaded: settings are unchanged", "error", err)
		return nil, err
	}
	s.log.InfoContext(ctx, "configuration reloaded", "file", done.File, "changed", strings.Join(done.Changed, " "), "need_restart", strings.Join(done.NeedRestart, " "))
	return done, nil
}

func (f *Gateway) reread(s *Running) (*gateway.Reloaded, error) {
	c, file, err := config.Load(f.Config, f.Policies)
	if err != nil {
		return nil, err
	}
	l, err := f.live(s, c, file)
	if err != nil {
		return nil, err
	}
	renewed := false
	if s.tls != nil {
		if renewed, err = s.tls.Refresh(time.Now()); err != nil {
			return nil, fmt.Errorf("gateway.tls: %w", err)
		}
	}
	next, err := s.gateway.Load().With(l.up, &l.options)
	if err != nil {
		return nil, err
	}
	if err := s.Sessions.Configure(l.sessions); err != nil {
		return nil, err
	}
	s.gateway.Store(next)
	s.useProviders(l)
	s.level.Set(l.level)
	s.retention.Store(&l.retention)
	done := &gateway.Reloaded{File: file}
	done.Changed, done.NeedRestart = config.Changes(s.Config, c)
	if renewed {
		done.Changed = append(done.Changed, "gateway.tls")
	}
	if c.Gateway.KeysFile != "" && !reflect.DeepEqual(s.named.All(), l.options.Keys.All()) && !slices.Contains(done.Changed, "gateway.keys_file") {
		done.Changed = append(done.Changed, "gateway.keys_file")
	}
	s.named = l.options.Keys
	keys := l.keys()
	for _, file := range []struct {
		setting, name string
		was, is       []string // the keys
	}{
		{"gateway.client_keys_file", c.Gateway.ClientKeysFile, s.keys.clients, keys.clients},
		{"gateway.operator_key_file", c.Gateway.OperatorKeyFile, s.keys.operators, keys.operators},
	} {
		if file.name != "" && !slices.Equal(file.was, file.is) && !slices.Contains(done.Changed, file.setting) {
			done.Changed = append(done.Changed, file.setting)
		}
	}
	s.keys = keys
	if s.Tenants != nil && s.keyless && len(keys.clients) > 0 && c.Gateway.TenantBy == "" {
		done.NeedRestart = append(done.NeedRestart, "gateway.tenant_by") // its default has changed
	}
	done.Changed, done.NeedRestart = append([]string{}, done.Changed...), append([]string{}, done.NeedRestart...)
	// Settings that need a restart keep their values.
	s.Config = c.Started(s.Config)
	return done, nil
}

// ServeHTTP serves requests with the current settings.
func (s *Running) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/furl/") {
		s.Received.Add(1)
	}
	s.gateway.Load().ServeHTTP(w, r)
}

// hangups returns a channel that receives each SIGHUP, and a function that stops this.
// In a terminal, the signal means that the terminal was closed: it ends the program.
func (f *Gateway) hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	if f.Running || term.IsTerminal(int(os.Stdin.Fd())) {
		return c, func() {}
	}
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// onHangup reloads the configuration after each hangup, until ctx ends.
func (f *Gateway) onHangup(ctx context.Context, s *Running, hangups <-chan os.Signal) error {
	for {
		select {
		case <-hangups:
			_, _ = f.reload(ctx, s) // logs the error
		case <-ctx.Done():
			return nil
		}
	}
}

// HourCache says when requests ask for cache entries of one hour, by a setting that may
// be left to the policy.
func HourCache(set *bool) protocol.HourCache {
	switch {
	case set == nil:
		return protocol.HourByPolicy
	case *set:
		return protocol.HourAlways
	}
	return protocol.HourNever
}
