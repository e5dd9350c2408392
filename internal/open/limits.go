package open

import "github.com/furlhq/furl/protocol"

// modelLimits are the limits of a model as its provider has reported them.
type modelLimits struct {
	window int
	// reported says that window is the provider's number, not an estimate.
	reported bool
	// accepted is the largest prompt that the provider has accepted, in tokens.
	accepted int
	// output reports whether max_tokens of a request counts towards the window.
	output bool
	// binds reports that the provider has refused thinking as bound to another prompt.
	binds bool
	// noHour reports that the provider refuses cache entries of one hour.
	noHour bool
}

// LearnedWindow returns the window that a model's provider has reported by refusing a
// prompt, and the largest prompt that it has accepted, both 0 if unknown.
func (a *shared) LearnedWindow(model string) (window, accepted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.limits[model]
	return l.window, l.accepted
}

// maxLimits is the largest number of models whose limits are kept.
const maxLimits = 1000

// windowMargin is the share by which the assumed window is smaller than a refused prompt
// if the provider does not report its limit. The prompt's size is an estimate.
const windowMargin = 0.05

// RecordOverflow records that a model's provider has refused a prompt of about so
// many tokens as too long. It returns the context window to plan with before the
// prompt is sent again: the limit that the provider reported, else a little less
// than the prompt, even if a larger one was accepted before; 0 if unknown.
func (a *shared) RecordOverflow(model string, o *protocol.Overflow, tokens int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.limits[model]
	switch {
	case o.Limit > 0:
		l.window, l.reported = o.Limit, true
		// A prompt below the limit was refused because of max_tokens.
		l.output = l.output || o.Tokens > 0 && o.Tokens <= o.Limit
	case tokens > 0:
		window := tokens - int(windowMargin*float64(tokens))
		if learned := max(window, l.accepted); l.window == 0 || learned < l.window {
			l.window, l.reported = learned, false
		}
		// This prompt must become smaller than it was, also if a larger one was accepted.
		a.setLimits(model, l)
		return min(l.window, window)
	default:
		return 0
	}
	a.setLimits(model, l)
	return l.window
}

// recordAccepted records the size of a prompt that a model's provider has accepted. A
// smaller learned window is dropped: it came from a text that only looked like a
// refusal.
func (a *shared) recordAccepted(model string, prompt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.limits[model]
	was := l
	l.accepted = max(l.accepted, prompt)
	if l.window > 0 && prompt > l.window {
		l.window, l.reported = 0, false
	}
	if l != was {
		a.setLimits(model, l)
	}
}

func (a *shared) setLimits(model string, l modelLimits) {
	if a.limits == nil || len(a.limits) > maxLimits {
		a.limits = make(map[string]modelLimits)
	}
	a.limits[model] = l
}

// outputCounts reports whether max_tokens counts towards a model's window, as its
// provider has reported.
func (a *shared) outputCounts(model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits[model].output
}
