package session

import "strings"

// maxUnknown is the largest number of recorded models with an unknown window, and
// maxModelName the longest recorded name in bytes. Names come from requests.
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

// countUnknownWindows returns the number of requested models whose window is known
// neither from the options, nor the provider, nor the catalog.
func (a *shared) countUnknownWindows() (n int) {
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
