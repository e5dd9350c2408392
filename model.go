package furl

import "time"

// Usage is what a provider reported for one request, or one of its passes, in its own
// tokens.
type Usage struct {
	Input        int // neither read from nor written to the cache
	CacheRead    int
	CacheWrite   int // default lifetime
	CacheWrite1h int // longer lifetime, see Prices.CacheWrite1h
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

// Pass is one of several passes of a model that a provider runs for one request: one
// before and one after a tool of the provider, a compaction by the provider, or an advisor. Each
// is billed at its own model's prices.
type Pass struct {
	// Kind is the provider's name of the pass. PassMessage and PassCompaction have
	// the conversation as their prompt; other passes have a prompt of their own.
	Kind  string
	Model string // by its name in requests; "": the model of the request
	Usage Usage
}

// The kinds of passes whose prompt is the conversation.
const (
	PassMessage    = "message"    // wrote a part of the reply
	PassCompaction = "compaction" // wrote a summary of the conversation
)

// Passes are all passes of a request in order, if the provider lists them; nil if there
// was one, which the usage of the request describes. With several, the usage of the
// request is that of the last pass that wrote a part of the reply, whose prompt is the
// conversation as it is after the others.
type Passes []Pass

// First returns the usage of the first pass whose prompt was the conversation: the
// request as it was sent. u is the usage of the request.
func (p Passes) First(u Usage) Usage {
	for i := range p {
		if p[i].OnConversation() {
			return p[i].Usage
		}
	}
	return u
}

// Replied returns the usage of all passes that wrote a part of the reply together. u is
// the usage of the request.
func (p Passes) Replied(u Usage) Usage {
	var sum Usage
	for i := range p {
		if p[i].Kind == PassMessage {
			sum = sum.Add(p[i].Usage)
		}
	}
	if sum == (Usage{}) {
		return u
	}
	return sum
}

// Last returns the index of the pass whose usage is that of the request: the last one
// that wrote a part of the reply, else the last compaction; -1 if there is neither.
func (p Passes) Last() int {
	last := -1
	for i := range p {
		if p[i].Kind == PassMessage || p[i].Kind == PassCompaction && (last < 0 || p[last].Kind == PassCompaction) {
			last = i
		}
	}
	return last
}

// All returns the passes, those of a request without a list too. u is the usage of the
// request.
func (p Passes) All(u Usage) Passes {
	if len(p) > 0 {
		return p
	}
	return Passes{{Kind: PassMessage, Usage: u}}
}

// Sum returns the usage of all passes of a request whose prompt and reply have the usage u.
func (p Passes) Sum(u Usage) Usage {
	if len(p) == 0 {
		return u
	}
	var sum Usage
	for i := range p {
		sum = sum.Add(p[i].Usage)
	}
	return sum
}

// OnConversation reports whether the prompt of the pass was the conversation.
func (p *Pass) OnConversation() bool { return p.Kind == PassMessage || p.Kind == PassCompaction }

// Prices are in US dollars per million tokens. The zero value means unknown.
type Prices struct {
	Input      float64
	CacheRead  float64
	CacheWrite float64 // default lifetime
	// CacheWrite1h is for entries with the longer lifetime that a request can ask for:
	// an hour (Anthropic), or Caching.Extended (OpenAI).
	CacheWrite1h float64
	Output       float64
}

// TimedPrices are prices that a provider charges at some times only: in some hours of
// the day, or from a day on.
type TimedPrices struct {
	// The prices apply from From on and before Until. Zero: no limit.
	From, Until time.Time
	// Weekdays restricts them to Monday to Friday, in UTC.
	Weekdays bool
	// Hours restricts them to parts of the day. Empty: the whole day.
	Hours []Hours
	// Prices and LongPrices replace those of the model.
	Prices, LongPrices Prices
}

// Hours is a part of a day in UTC: from From on and before To, as times since midnight.
type Hours struct{ From, To time.Duration }

// Caching says how a model's provider caches prompts.
type Caching struct {
	// Explicit caches end at the client's breakpoints (Anthropic); others find
	// any common prefix (OpenAI).
	Explicit bool
	// MinPrefix is the shortest cached prefix in tokens. If Lifetime is zero
	// too, nothing is cached.
	MinPrefix int
	// Granule is the step in tokens by which an automatic prefix grows.
	Granule int
	// Lifetime is how long an entry lives after its last use, unless the request
	// asks for another lifetime.
	Lifetime time.Duration
	// Extended is how long an entry lives if the request asks for extended
	// retention (OpenAI); 0: the provider has none for this model.
	Extended time.Duration
	// Lookback is how many positions before a breakpoint are searched for an
	// entry; 0: no limit.
	Lookback int
	// MaxMarks is how many breakpoints a request may have; 0: none.
	MaxMarks int
}

// Thinking describes how a provider treats old reasoning.
type Thinking struct {
	// Binds: a thinking block is bound to everything before it, and the
	// provider refuses it after an edit there.
	Binds bool
	// LastOnly: the provider drops and does not bill thinking before the last
	// user message.
	LastOnly bool
	// Removable: the client may leave out old thinking outside an open tool
	// loop.
	Removable bool
	// Required: in an open tool loop the last assistant message must start with
	// its thinking.
	Required bool
}

// Model is what furl knows about a model: data of the catalogue.
type Model struct {
	ID string
	// Like is the known model whose rules are assumed for this one, because the
	// catalogue lacks it; "": the rules are known, or nothing is.
	Like     string
	Provider string // "anthropic", "openai", …
	Format   Format // the wire format its own provider speaks
	Window   int    // context window in tokens; 0: unknown
	// WindowAssumed: the window is that of similar models.
	WindowAssumed bool
	MaxOutput     int // 0: unknown
	Prices        Prices
	// LongPrices apply to the whole request if its prompt is longer than
	// LongAbove tokens; LongAbove 0: never.
	LongPrices Prices
	LongAbove  int
	// TimedPrices replace Prices and LongPrices at their times. Of several that apply,
	// the last one does.
	TimedPrices []TimedPrices
	// Billing says how the terms of a request change its cost.
	Billing  Billing
	Caching  Caching
	Thinking Thinking
	// TokenScale is the initial estimate of the model's tokens per counted
	// token. 0: 1.
	TokenScale float64
	// ItemTokens is the initial estimate of a call's or result's tokens beyond
	// its text. 0: the default.
	ItemTokens float64
	// SystemInside: role "system" is accepted anywhere in the list.
	SystemInside bool
	// SystemFirst: role "system" is accepted at the start of the list.
	SystemFirst bool
	// ToolSearch: the provider has a search for tools whose definitions are
	// deferred (defer_loading).
	ToolSearch bool
	// Prefill: an assistant message may be last.
	Prefill bool
	// MaxBytes, MaxImages and MaxMessages are the provider's limits of a
	// request; 0: unknown.
	MaxBytes, MaxImages, MaxMessages int
	// Sides are the provider's limits of the width and height of an image.
	Sides ImageSides
	// ImageTokens is the largest cost of an image; PixelsPerToken the pixels of
	// one token. Zero: the counter's defaults.
	ImageTokens    int
	PixelsPerToken int
}

// ImageSides are limits of the width and height of each image of a request, in pixels; 0:
// unknown.
type ImageSides struct {
	Max int
	// Many is the limit in requests with more than Above images.
	Many, Above int
}

// Of returns the limit in a request with that many images, 0 if there is none.
func (s ImageSides) Of(images int) int {
	if s.Many > 0 && images > s.Above {
		return s.Many
	}
	return s.Max
}

// TooLarge reports whether an image exceeds a limit of its sides, in pixels; 0: no limit.
// An image of unknown size does not.
func (m *Media) TooLarge(limit int) bool {
	return limit > 0 && m.Kind == KindImage && max(m.Width, m.Height) > limit
}
