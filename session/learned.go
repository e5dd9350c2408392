package session

import "github.com/furlhq/furl/protocol"

// learned is what a provider has told of a model.
type learned struct {
	window int
	// accepted is the largest prompt that it has taken, as it reported.
	accepted int
	// output says that the reply which a request asks for must fit beside the
	// prompt.
	output bool
}

// maxLearned bounds of how many models it is known.
const maxLearned = 1000

// margin is how much smaller than a refused prompt the window is taken to be
// if the provider does not tell: the prompt's size is an estimate.
const margin = 0.05

// Refused notes that a model's provider has refused a prompt of about so many
// tokens as too long, and returns how large its prompts may be: as the provider
// says, or else a little less than the prompt; 0 if nothing is known.
func (a *shared) Refused(model string, o *protocol.Overflow, tokens int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.learned[model]
	switch {
	case o.Limit > 0:
		l.window = o.Limit
		// A prompt that fits by itself was refused for the reply asked for.
		l.output = l.output || o.Tokens > 0 && o.Tokens <= o.Limit
	case tokens > 0:
		window := max(tokens-int(margin*float64(tokens)), l.accepted)
		if l.window == 0 || window < l.window {
			l.window = window
		}
	default:
		return 0
	}
	a.know(model, l)
	return l.window
}

// accepted remembers how large a prompt a model's provider has taken. A window
// that is smaller was not the model's: a text that only looks like a refusal can
// name any number.
func (a *shared) accepted(model string, prompt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.learned[model]
	was := l
	l.accepted = max(l.accepted, prompt)
	if l.window > 0 && prompt > l.window {
		l.window = 0
	}
	if l != was {
		a.know(model, l)
	}
}

func (a *shared) know(model string, l learned) {
	if a.learned == nil || len(a.learned) > maxLearned {
		a.learned = make(map[string]learned)
	}
	a.learned[model] = l
}

// outputCounts reports whether a provider has said that the reply which a
// request asks for must fit beside the prompt.
func (a *shared) outputCounts(model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.learned[model].output
}
