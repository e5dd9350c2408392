package protocol

import (
	"encoding/json"

	"github.com/furlhq/furl"
)

// Params are the parts of a request that a program writes itself, except its
// messages. The codecs write the request from them.
type Params struct {
	Model  string // its name in requests
	System string // instructions, "" for none
	Tools  []Tool
	// MaxTokens limits the output. If zero, the provider's limit; Anthropic has
	// none and requires a number.
	MaxTokens int
	// Thinking is off, low, medium, high or a number of tokens, "" for the
	// provider's default. OpenAI accepts no number.
	Thinking string
	// CacheKey names the session to providers that route requests by it.
	CacheKey string
	// Options are more fields of the request, a JSON object. They replace fields
	// of the same name.
	Options json.RawMessage
}

// Tool describes a tool to a model.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // JSON Schema of its input, an object
}

// Part is a part of a message that a program writes: a text, or an image or
// document.
type Part struct {
	Text string
	// Type is the media type of Data, such as "image/png". If empty, the part
	// is the text.
	Type string
	Data []byte
}

// Delta is a piece of a streamed reply.
type Delta struct {
	// Kind is furl.KindText or furl.KindThinking, or furl.KindCall for the start of
	// a call.
	Kind furl.Kind
	// Text is the next piece of text or thinking.
	Text string
	// ID and Name are those of a call.
	ID, Name string
}
