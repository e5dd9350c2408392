// Package status says how a session stands by its metadata, without reading its records.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/spending"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// Status is what furl status shows.
type Status struct {
	Session furl.SessionID `json:"session"`
	Tenant  furl.Tenant    `json:"tenant,omitempty"` // empty: none
	Title   string         `json:"title,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Model   string         `json:"model,omitempty"`
	Updated time.Time      `json:"updated"`
	Size    int            `json:"context_tokens,omitempty"`
	Window  int            `json:"window,omitempty"` // 0: unknown
	// WindowAssumed: the window is that of similar models.
	WindowAssumed bool `json:"window_assumed,omitempty"`
	Hidden        int  `json:"hidden_tokens,omitempty"`
	// Next is what the next input costs, nil if no price or no prompt cache is known.
	Next *storage.NextInput `json:"next_input,omitempty"`
	// Savings is nil if no request was answered, or a version of furl that does not count
	// requests has recorded the session. Size and Hidden are then unknown.
	Savings *storage.SavingsLine `json:"savings,omitempty"`
	// Billed is what the recorded usage costs in US dollars (internal/billed); nil if no usage
	// with a known price is recorded, and for copied and imported sessions that continued.
	Billed     *float64 `json:"billed,omitempty"`
	StoreBytes int64    `json:"store_bytes,omitempty"` // of a file
	// UnknownTypes are types in the newest request that furl does not know.
	UnknownTypes []string `json:"unknown_types,omitempty"`
	// Limits is how much of the limits in dollars and tokens is used that the
	// configuration of this machine sets.
	Limits []spending.Use `json:"limits,omitempty"`
	// Plan is what the provider said about the limits of the account, nil if nothing.
	Plan *storage.Plan `json:"plan,omitempty"`

	Uncounted string `json:"-"` // why Savings is nil
}

// Of reads a session's metadata. The hint is the agent's id of the session, ""
// for any. An empty tenant is any tenant. If no session matches, the error wraps
// storage.ErrNoSession.
func Of(ctx context.Context, w *workspace.Workspace, tenant, name, hint string) (s *Status, err error) {
	place, err := w.Where()
	if err != nil {
		return nil, err
	}
	var store storage.Store
	var size int64
	if workspace.IsDatabase(place) {
		store, err = postgres.Open(ctx, place, nil)
	} else {
		info, statErr := os.Stat(place)
		if errors.Is(statErr, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w at %s: furl run and furl serve create one", workspace.ErrNoStore, place)
		}
		if statErr == nil {
			size = info.Size()
		}
		store, err = sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	}
	if err != nil {
		return nil, err
	}
	if store, err = w.Encrypted(store); err != nil {
		return nil, err
	}
	defer workspace.CloseStore(store, &err)
	var among []furl.Tenant
	if tenant != "" {
		one, err := tenants.Named(ctx, store, tenant)
		if err != nil {
			return nil, err
		}
		among = append(among, one)
	} else if among, err = tenants.All(ctx, store); err != nil {
		return nil, err
	}
	found, err := findStatus(ctx, store, among, name, hint)
	if err != nil {
		return nil, err
	}
	info := found.SessionInfo
	c, file, err := config.Load(w.Config, w.Policies)
	if err != nil {
		return nil, err
	}
	o, err := w.SessionOptions(c, file)
	if err != nil {
		return nil, err
	}
	o.LastWindow = true
	all, err := session.New(store, o)
	if err != nil {
		return nil, err
	}
	s = &Status{Session: info.Session, Tenant: found.tenant, Title: info.Title, Agent: agents.Name(info.Client), Model: info.Model, Updated: info.Newest(), StoreBytes: size, Plan: info.Plan}
	s.Window, s.WindowAssumed = all.WindowOf(info.Meta)
	if s.Limits, err = spending.OfSession(ctx, store, workspace.Limits(c), &info, time.Now()); err != nil {
		return nil, err
	}
	if info.Ledger != nil {
		s.Size, s.Hidden, s.UnknownTypes = info.Ledger.Size, info.Ledger.Hidden, info.Ledger.UnknownTypes
		s.Next = info.Ledger.Next
		s.Savings = info.Ledger.Sum()
		if spent := s.Savings.Spent(); s.Savings.Requests > s.Savings.Unpriced && info.Imported == 0 && info.ForkOf == "" {
			s.Billed = &spent
		}
		return s, nil
	}
	if info.Imported > 0 && hint == "" { // a status line has no time for it
		models := func(name string) furl.Model { return all.Model(name, info.Format) }
		if s.Billed, err = billed.Stored(ctx, store, &info, models); err != nil {
			return nil, err
		}
		one, err := all.For(found.tenant).Open(ctx, info.Session)
		if err != nil {
			return nil, err
		}
		if s.Next, err = one.NextInput(ctx); err != nil {
			return nil, err
		}
	}
	answered, err := storage.HasRequests(ctx, store, info.SessionKey)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Imported > 0:
		s.Uncounted = "it was imported."
	case info.ForkOf != "":
		s.Uncounted = "none was sent since it was copied."
	case answered:
		s.Uncounted = "an older version of furl recorded it."
	default:
		s.Uncounted = "none was answered."
	}
	return s, nil
}

// recentSessions is how many sessions of each tenant are searched for the newest one
// with requests.
const recentSessions = 50

// tenantSession is a session with its tenant.
type tenantSession struct {
	storage.SessionInfo
	tenant furl.Tenant
}

// findStatus finds a session of the tenants without reading its records: the one with
// the hint, with the name, or the newest one.
func findStatus(ctx context.Context, store storage.Store, among []furl.Tenant, name, hint string) (tenantSession, error) {
	var queries []storage.SessionQuery
	switch {
	case hint != "":
		queries = []storage.SessionQuery{{Hint: hint, Limit: 1}}
	case name == "" || strings.EqualFold(name, session.Latest):
		return newestStatus(ctx, store, among)
	default:
		queries = []storage.SessionQuery{{Hint: name, Limit: 1}, {Prefix: name, Limit: 2}}
	}
	for _, q := range queries {
		var found, exact []tenantSession
		for _, tenant := range among {
			for info, err := range store.Sessions(ctx, tenant, q) {
				if err != nil {
					return tenantSession{}, err
				}
				one := tenantSession{info, tenant}
				if string(info.Session) == name {
					exact = append(exact, one)
				}
				found = append(found, one)
			}
		}
		if len(exact) > 0 {
			found = exact
		}
		for _, one := range found {
			if one.tenant == tenants.Local && len(exact) > 0 {
				return one, nil // as in all other commands
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return tenantSession{}, ambiguousStatus(name, hint, found)
		}
	}
	if name == "" {
		return tenantSession{}, fmt.Errorf("%w with the id %q", storage.ErrNoSession, hint)
	}
	return tenantSession{}, fmt.Errorf("%w %q; furl sessions lists the sessions of the store", storage.ErrNoSession, name)
}

// ambiguousStatus returns the error for several sessions with a name or hint.
func ambiguousStatus(name, hint string, found []tenantSession) error {
	e := &session.AmbiguousError{Name: cmp.Or(name, hint)}
	among := map[furl.Tenant]bool{}
	var words []string
	for _, one := range found {
		e.Sessions = append(e.Sessions, one.SessionInfo)
		if !among[one.tenant] {
			among[one.tenant] = true
			words = append(words, tenants.Word(one.tenant))
		}
	}
	if len(among) > 1 {
		return usage.Errorf("ambiguous session name %q: tenants %s have such sessions; select one with --tenant", e.Name, strings.Join(words, ", "))
	}
	return e
}

// newestStatus returns the newest session with requests. If no session has requests, it
// returns the newest one.
func newestStatus(ctx context.Context, store storage.Store, among []furl.Tenant) (newest tenantSession, err error) {
	found := false
	for _, tenant := range among {
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{Limit: recentSessions}) {
			if err != nil {
				return tenantSession{}, err
			}
			counted, was := info.Ledger != nil, newest.Ledger != nil
			if !found || counted && !was || counted == was && info.Newest().After(newest.Newest()) {
				newest, found = tenantSession{info, tenant}, true
			}
			if counted {
				break // the tenant's others are older
			}
		}
	}
	if !found {
		return newest, fmt.Errorf("%w yet: start an agent with furl run -- AGENT", storage.ErrNoSession)
	}
	return newest, nil
}
