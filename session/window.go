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
//  6. the one that a catalog file of the user sets (catalog.Catalog.SetByUser)
//  7. the one that the provider's models API reports (Options.Reported)
//  8. the built-in catalog's
//  9. the smallest window of the newest models of the same family, if the catalog lacks
//     the model (catalog.Catalog.Assume); Model.WindowAssumed is then set
//
// A limit of 5 also lowers the windows of 2 to 4 and 6 to 9, because the provider would
// refuse longer prompts again. A prompt that the provider has answered raises the windows
// of an import and of 6 to 9 to its size. Without a family, the window is unknown, and
// nothing is reduced.
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
		m.Window, m.WindowAssumed = n, false
		return m
	}
	user := a.configuredWindow(&m)
	if user == 0 && a.live().LastWindow && name == meta.Model {
		user = meta.Window
	}
	a.setWindow(&m, name, format, user, meta.Windows[name], meta.Answered[name])
	return m
}

// WindowOf returns the context window of a session with this metadata, in tokens, 0 if
// it is unknown, and whether it is assumed. It equals Usage.Limit without reading the
// session.
func (a *shared) WindowOf(meta storage.Meta) (tokens int, assumed bool) {
	m := a.modelFor(meta.Model, meta.Format, &meta)
	return m.Window, m.WindowAssumed
}

// plannedWindow returns the window that requests for a model are planned for, without
// the session's setting, 0 if it is the recorded one or the catalog's.
func (s *Session) plannedWindow(name string) int {
	m := s.all.describe(name, s.format())
	recorded := s.meta.Windows[name]
	known := cmp.Or(recorded, m.Window)
	s.all.setWindow(&m, name, s.format(), s.all.configuredWindow(&m), recorded, s.meta.Answered[name])
	if m.Window == known || m.Window == s.meta.Answered[name] {
		return 0
	}
	return m.Window
}

// providerWindow returns the largest prompt that the provider accepts for a model in
// this session, whatever the user has set, 0 if unknown.
func (s *Session) providerWindow(name string) int {
	m := s.all.describe(name, s.format())
	s.all.setWindow(&m, name, s.format(), 0, s.meta.Windows[name], s.meta.Answered[name])
	return m.Window
}

// configuredWindow returns the window that the user has set for a model, 0 if none.
func (a *shared) configuredWindow(m *furl.Model) int {
	live := a.live()
	return cmp.Or(live.Window, live.Policies.Window(m.ID))
}

// setWindow sets the window of a model that the catalog describes. user is the window that
// the user has set, recorded the one of an imported recording, answered the largest
// prompt of the session that the provider has answered, 0 if there is none.
func (a *shared) setWindow(m *furl.Model, name string, format furl.Format, user, recorded, answered int) {
	a.mu.Lock()
	learned := a.limits[name]
	a.mu.Unlock()
	reported := a.reported(name, format)
	if reported.MaxOutput > 0 && !a.live().Catalog.SetByUser(name, "max_output") {
		m.MaxOutput = reported.MaxOutput
	}
	if reported.Window > 0 && a.live().Catalog.SetByUser(name, "window") {
		reported.Window = 0
	}
	set := cmp.Or(user, recorded)
	if set == 0 && learned.reported {
		m.Window, m.WindowAssumed = learned.window, false
		return
	}
	m.WindowAssumed = m.WindowAssumed && set == 0 && reported.Window == 0
	m.Window = cmp.Or(set, reported.Window, m.Window)
	if user == 0 && m.Window > 0 {
		m.Window = max(m.Window, learned.accepted, answered)
	}
	if learned.window > 0 && (m.Window == 0 || learned.window < m.Window) {
		m.Window, m.WindowAssumed = learned.window, false
	}
}
