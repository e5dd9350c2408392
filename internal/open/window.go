package open

import (
	"cmp"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Model is session.Session.Model.
func (c *Change) Model(name string) furl.Model {
	meta := c.Meta()
	return c.all.modelFor(name, c.Format(), &meta)
}

// modelFor is Change.Model for a session with this metadata.
func (a *shared) modelFor(name string, format furl.Format, meta *storage.Meta) furl.Model {
	m := a.describe(name, format)
	m.Thinking.Binds = m.Thinking.Binds || a.bindsThinking(name, meta)
	if n, err := strconv.Atoi(meta.Settings[SettingLimit]); err == nil && n > 0 {
		m.Window, m.WindowAssumed = n, false
		return m
	}
	user := a.ConfiguredWindow(&m)
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
func (c *Change) plannedWindow(name string) int {
	m := c.all.describe(name, c.Format())
	recorded := c.Meta().Windows[name]
	known := cmp.Or(recorded, m.Window)
	c.all.setWindow(&m, name, c.Format(), c.all.ConfiguredWindow(&m), recorded, c.Meta().Answered[name])
	if m.Window == known || m.Window == c.Meta().Answered[name] {
		return 0
	}
	return m.Window
}

// ProviderWindow returns the largest prompt that the provider accepts for a model in
// this session, whatever the user has set, 0 if unknown.
func (c *Change) ProviderWindow(name string) int {
	m := c.all.describe(name, c.Format())
	c.all.setWindow(&m, name, c.Format(), 0, c.Meta().Windows[name], c.Meta().Answered[name])
	return m.Window
}

// ConfiguredWindow returns the window that the user has set for a model, 0 if none.
func (a *shared) ConfiguredWindow(m *furl.Model) int {
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
	window, maxOutput := 0, 0 // that the models API reports
	if a.o.Reported != nil {
		window, maxOutput = a.o.Reported(name, format)
	}
	if maxOutput > 0 && !a.live().Catalog.SetByUser(name, "max_output") {
		m.MaxOutput = maxOutput
	}
	if window > 0 && a.live().Catalog.SetByUser(name, "window") {
		window = 0
	}
	set := cmp.Or(user, recorded)
	if set == 0 && learned.reported {
		m.Window, m.WindowAssumed = learned.window, false
		return
	}
	m.WindowAssumed = m.WindowAssumed && set == 0 && window == 0
	m.Window = cmp.Or(set, window, m.Window)
	if user == 0 && m.Window > 0 {
		m.Window = max(m.Window, learned.accepted, answered)
	}
	if learned.window > 0 && (m.Window == 0 || learned.window < m.Window) {
		m.Window, m.WindowAssumed = learned.window, false
	}
}
