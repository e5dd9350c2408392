package open

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

// maxUnknown is the largest number of recorded models with an unknown window or assumed
// rules, and maxModelName the longest recorded name in bytes. Names come from requests.
const (
	maxUnknown   = 100
	maxModelName = 200
)

// warnUnknownWindow records and logs a model whose window is unknown, once.
func (a *shared) warnUnknownWindow(model string) {
	model = model[:min(len(model), maxModelName)]
	a.mu.Lock()
	said := a.unknown[model] || len(a.unknown) >= maxUnknown
	if !said {
		if a.unknown == nil {
			a.unknown = make(map[string]bool)
		}
		a.unknown[strings.Clone(model)] = true // do not keep a long name in memory
	}
	a.mu.Unlock()
	if !said {
		a.log.Warn("unknown context window of model: nothing is hidden to make room; set it with --window or in a catalog", "model", model)
	}
}

// UnknownWindows returns the number of requested models whose window is known
// neither from the options, nor the provider, nor the catalog.
func (a *shared) UnknownWindows() (n int) {
	a.mu.Lock()
	var names []string
	for name := range a.unknown {
		names = append(names, name)
	}
	a.mu.Unlock()
	for _, name := range names {
		if a.Model(name, "").Window == 0 {
			n++
		}
	}
	return n
}

// warnAssumed returns a note on a model whose rules are assumed, for the first request of
// the session to it, else "". It logs the note once for each model. The session is locked.
func (c *Change) warnAssumed(name string, m *furl.Model) string {
	if m.Like == "" || m.Window == 0 {
		return ""
	}
	name = name[:min(len(name), maxModelName)]
	code := "assumed " + name
	if c.s.warned[code] || len(c.s.warned) >= maxUnknown {
		return ""
	}
	if c.s.warned == nil {
		c.s.warned = make(map[string]bool)
	}
	c.s.warned[code] = true
	window := ""
	if m.WindowAssumed {
		window = fmt.Sprintf(" with an assumed context window of %s tokens", numbers.Thousands(m.Window))
	}
	a := c.all
	a.mu.Lock()
	said := a.assumed[name] || len(a.assumed) >= maxUnknown
	if !said {
		if a.assumed == nil {
			a.assumed = make(map[string]bool)
		}
		a.assumed[strings.Clone(name)] = true
	}
	a.mu.Unlock()
	if !said {
		a.log.Warn("model is not in the catalogue: rules of its family are assumed", "model", name, "like", m.Like, "window", m.Window, "window_assumed", m.WindowAssumed)
	}
	return fmt.Sprintf("model %s is not in the catalogue: it is assumed to be like %s%s; furl models shows more", name, m.Like, window)
}
