package policy

import "github.com/furlhq/furl"

// NewBudget begins the budget of a request to a model: its window, or the one
// given if that is not 0, its limits, and the room kept free for the reply.
// What the request holds, and when it is sent, is for the caller to add.
func NewBudget(m furl.Model, window int) furl.Budget {
	if window == 0 {
		window = m.Window
	}
	return furl.Budget{
		Model: m, Window: window, Reserve: reserveOf(window, m),
		MaxBytes: m.MaxBytes, MaxImages: m.MaxImages, MaxMessages: m.MaxMessages,
	}
}

// reserveOf is the room left for the reply: what the model may write, but not
// more than a tenth of the window or 8,000 tokens.
func reserveOf(window int, m furl.Model) int {
	n := min(window/10, 8000)
	if m.MaxOutput > 0 {
		n = min(n, m.MaxOutput)
	}
	return n
}
