package storage

import (
	"time"

	"github.com/furlhq/furl"
)

// NextInput is what the input of a session's next message costs, in US dollars at list
// prices, without the message and without the reply. Package internal/nextinput computes it.
// It is not changed once it is set.
type NextInput struct {
	// Record is the newest record when this was computed, and Policy the session's policy.
	Record furl.Seq `json:"record"`
	Policy string   `json:"policy"`
	// Used is when a request or a ping last used the prompt cache, and Expires when its
	// entries expire; zero if the provider does not say.
	Used    time.Time `json:"cache_used"`
	Expires time.Time `json:"cache_expires,omitzero"`
	// Tokens is the size of the prompt.
	Tokens int `json:"tokens"`
	// Warm is the cost while the entries live, Cold once those of the messages have
	// expired.
	Warm float64   `json:"warm"`
	Cold ColdInput `json:"cold"`
	// Later is the cost an hour after Used, if the instructions and tools have entries of
	// an hour and the messages have shorter ones; else nil.
	Later *ColdInput `json:"after_an_hour,omitempty"`
}

// ColdInput is what the input costs once cache entries have expired, in US dollars.
type ColdInput struct {
	Full float64 `json:"full"`
	// Reduced is the cost with what the policy hides then, and Hidden how many tokens that
	// is; 0 if it hides nothing.
	Reduced float64 `json:"reduced,omitempty"`
	Hidden  int     `json:"hidden_tokens,omitempty"`
}

// UsedAt returns a copy for a later use of the cache, which renews its entries.
func (n *NextInput) UsedAt(at time.Time) *NextInput {
	if n == nil || !at.After(n.Used) {
		return n
	}
	later := *n
	if !n.Expires.IsZero() {
		later.Expires = n.Expires.Add(at.Sub(n.Used))
	}
	later.Used = at
	return &later
}
