package session

import (
	"cmp"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Model returns the description of a model, by its name in requests, for this session.
// All that furl plans, shows and counts for a session uses its Window. It is the first
// of these that is known:
//
//  1. the session's setting context_limit
//  2. Options.Window, the flag --window
//  3. the window that the configuration sets for the model (policy.Set.Window)
//  4. what is recorded: with Options.LastWindow the window of the latest request, else
//     the one that an imported recording names (storage.Meta.Windows)
//  5. the limit that the provider reported when it refused a prompt
//  6. the catalog's
//
// A limit of 5 also lowers what 2 to 4 and 6 say, because the provider would refuse
// longer prompts again.
func (s *Session) Model(name string) furl.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model(name)
}

// model is Model for a locked session.
func (s *Session) model(name string) furl.Model {
	meta := &s.meta
	if s.newMeta != nil {
		meta = s.newMeta
	}
	return s.all.modelFor(name, s.format(), meta)
}

// modelFor is Session.Model for a session with this metadata.
func (a *shared) modelFor(name string, format furl.Format, meta *storage.Meta) furl.Model {
	m := a.describe(name, format)
	m.Thinking.Binds = m.Thinking.Binds || a.bindsThinking(name, meta)
	if n, err := strconv.Atoi(meta.Settings[settingLimit]); err == nil && n > 0 {
		m.Window = n
		return m
	}
	recorded := meta.Windows[name]
	if a.live().LastWindow && meta.Window > 0 && name == meta.Model {
		recorded = meta.Window
	}
	m.Window = a.window(name, &m, cmp.Or(a.configuredWindow(&m), recorded))
	return m
}

// WindowOf returns the context window of a session with this metadata, in tokens, 0 if
// it is unknown. It equals Usage.Limit without reading the session.
func (a *shared) WindowOf(meta storage.Meta) int {
	return a.modelFor(meta.Model, meta.Format, &meta).Window
}

// plannedWindow returns the window that requests for a model are planned for, without
// the session's setting, 0 if it is the recorded one or the catalog's.
func (s *Session) plannedWindow(name string) int {
	m := s.all.describe(name, s.format())
	recorded := s.meta.Windows[name]
	window := s.all.window(name, &m, cmp.Or(s.all.configuredWindow(&m), recorded))
	if window == cmp.Or(recorded, m.Window) {
		return 0
	}
	return window
}

// providerWindow returns the largest prompt that the provider accepts for a model in
// this session, whatever the user has set, 0 if unknown.
func (s *Session) providerWindow(name string) int {
	m := s.all.describe(name, s.format())
	return s.all.window(name, &m, s.meta.Windows[name])
}

// configuredWindow returns the window that the user has set for a model, 0 if none.
func (a *shared) configuredWindow(m *furl.Model) int {
	live := a.live()
	return cmp.Or(live.Window, live.Policies.Window(m.ID))
}

// window returns the window of a model of the catalog. set is the configured or
// recorded one, 0 if there is none.
func (a *shared) window(name string, m *furl.Model, set int) int {
	a.mu.Lock()
	learned := a.limits[name]
	a.mu.Unlock()
	if set == 0 && learned.reported {
		return learned.window
	}
	window := cmp.Or(set, m.Window)
	if learned.window > 0 && (window == 0 || learned.window < window) {
		return learned.window
	}
	return window
}
