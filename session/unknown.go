package session

import "strings"

// maxUnknown bounds how many models with an unknown window are remembered,
// and maxModelName how many bytes of the name of one. Requests say it.
const (
	maxUnknown   = 100
	maxModelName = 200
)

// unknownWindow notes a model whose window is unknown, and says so once.
func (a *shared) unknownWindow(model string) {
	model = model[:min(len(model), maxModelName)]
	a.mu.Lock()
	said := a.unknown[model] || len(a.unknown) >= maxUnknown
	if !said {
		if a.unknown == nil {
			a.unknown = make(map[string]bool)
		}
		a.unknown[strings.Clone(model)] = true // not the whole of a long name
	}
	a.mu.Unlock()
	if !said {
		a.log.Warn("unknown context window of model: nothing is hidden to make room; set it with --window or in a catalog", "model", model)
	}
}

// unknownWindows counts the models that were asked for and whose window nobody
// knows: neither the user, nor their provider, nor the catalogue.
func (a *shared) unknownWindows() (n int) {
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
