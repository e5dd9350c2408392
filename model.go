package furl

import "time"

// Usage is what a provider reported for one request, in its own tokens.
type Usage struct {
	Input        int // neither read from nor written to the cache
	CacheRead    int
	CacheWrite   int // default lifetime
	CacheWrite1h int // one-hour lifetime
	Output       int // reply, reasoning included
	Reasoning    int // the part of Output that was reasoning, where reported
}

// Prompt is the size of the whole prompt: fresh, read and written.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h }

// Add gives the usage of two requests together.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.CacheWrite1h += v.CacheWrite1h
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	return u
}

// IsZero reports whether nothing was reported.
func (u Usage) IsZero() bool { return u == Usage{} }

// Prices are in US dollars per million tokens. The zero value means unknown.
type Prices struct {
	Input        float64
	CacheRead    float64
	CacheWrite   float64 // default lifetime
	CacheWrite1h float64
	Output       float64
}

// Caching says how a model's provider caches prompts.
type Caching struct {
	// Explicit caches end at the client's marks (Anthropic); otherwise any
	// shared prefix is found by itself (OpenAI).
	Explicit bool
	// MinPrefix is the shortest prefix that is cached, in tokens. Zero with
	// Lifetime zero means that nothing is cached.
	MinPrefix int
	// Granule is the step in tokens in which an automatic prefix grows.
	Granule int
	// Lifetime is how long an entry lives after its last use.
	Lifetime time.Duration
	// Lookback is how many positions before a mark are searched for an
	// entry; 0: no limit.
	Lookback int
	// MaxMarks is how many marks a request may carry; 0: none.
	MaxMarks int
}

// Thinking says how a model's provider treats old reasoning.
type Thinking struct {
	// Binds: each thinking block is bound to everything before it, and an
	// edit there makes the provider refuse it.
	Binds bool
	// LastOnly: thinking before the last user message is dropped by the
	// provider itself and not billed.
	LastOnly bool
	// Removable: old thinking may be left out by the client outside an open
	// tool loop.
	Removable bool
	// Required: in an open tool loop the last assistant message must start
	// with its thinking.
	Required bool
}

// Model is what furl knows about a model: data of the catalogue.
type Model struct {
	ID        string
	Provider  string // "anthropic", "openai", …
	Format    Format // the wire format its own provider speaks
	Window    int    // context window in tokens; 0: unknown
	MaxOutput int    // 0: unknown
	Prices    Prices
	// LongPrices hold for the whole request once its prompt is longer than
	// LongAbove tokens; see package price. LongAbove 0: there are none.
	LongPrices Prices
	LongAbove  int
	Caching    Caching
	Thinking   Thinking
	// TokenScale is how many of the model's own tokens one counted token is
	// worth before anything was reported: where calibration starts. 0: 1.
	TokenScale float64
	// ItemTokens is how many of the model's own tokens a call or a result costs
	// beyond its words, before anything was reported. 0: the common number.
	ItemTokens float64
	// SystemInside: role "system" is accepted inside the message list.
	SystemInside bool
	// SystemFirst: role "system" is accepted at the start of the message list.
	SystemFirst bool
	// Prefill: an assistant message may stand last.
	Prefill bool
	// MaxBytes, MaxImages and MaxMessages are the provider's limits on one
	// request; 0: none known.
	MaxBytes, MaxImages, MaxMessages int
	// ImageTokens is the most one image costs; PixelsPerToken how many
	// pixels make one token. Zero: the counter's default.
	ImageTokens    int
	PixelsPerToken int
}
