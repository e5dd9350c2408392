// Package protocol describes the exchange with a provider of models: requests,
// replies, errors, and the codecs that translate between them and furl's
// messages. Packages wire/anthropic and wire/openai implement the codecs.
package protocol

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
)

// Request is one decoded request to a model.
type Request struct {
	Format    furl.Format
	Endpoint  Endpoint // what the path says; see Endpoint.Complete
	Body      []byte   // as it came in
	Model     string
	MaxTokens int // requested output; 0: not given
	Stream    bool
	// Preamble is the content before the messages, for measuring: instructions
	// as text blocks, and each tool as an opaque block with its JSON as Text.
	Preamble []furl.Block
	// PreambleDigest identifies the instructions and tools.
	PreambleDigest furl.Digest
	// Messages are the decoded messages; Messages[i].Raw aliases Body.
	Messages []furl.Message
	// Offsets[i] is the offset of Messages[i].Raw in Body.
	Offsets []int
	// Chains are the chains of digests at the end of each message
	// (Message.Extend), nil if unknown.
	Chains []furl.Digest
	// Sums are hashes of the messages' Raw that are valid in this process, nil if
	// unknown.
	Sums []uint64
	// Ambiguous is a field of the request, a message, a block or a tool that
	// occurs twice or in another case, "" if none. Parsers differ in which one
	// they read, so such a request must not be changed.
	Ambiguous string
	// Outline is Body without most of its list, for readers of the other
	// fields. If nil, use Body.
	Outline []byte
}

// Fields returns Outline, or Body if there is none: all fields of the request,
// but not necessarily the whole list.
func (r *Request) Fields() []byte {
	if r.Outline != nil {
		return r.Outline
	}
	return r.Body
}

// Thread is a history that the provider keeps for a client, which then sends only what is
// new (Anthropic's message threads).
type Thread struct {
	// Previous is the id of the reply that the request continues from, "" if the request
	// has the whole history and creates the thread.
	Previous string
	// Refusal is the error after which clients send the whole history.
	Refusal *Refusal
}

// CacheRequest says which entries of the provider's prompt cache a request asks for.
// The zero value leaves everything to the provider.
type CacheRequest struct {
	// Lifetime is how long the entry at the end of the prompt lives; 0: the
	// provider's default.
	Lifetime time.Duration
	// HourTail is the number of messages after the last cache breakpoint of one hour
	// in the messages, if the entries of these messages live less; -1 if no message
	// has such a breakpoint, or if all entries live an hour.
	HourTail int
	// Uncached reports that no message is cached, because the request has no
	// breakpoint for them.
	Uncached bool
}

// HourCache says when a request asks for cache entries of one hour for the client's
// instructions and tools, instead of its shorter ones. It does so at most from the first
// request after a pause on that the shorter ones do not outlive, and only for models with
// a price for such entries.
type HourCache int

// When a request asks for cache entries of one hour.
const (
	// HourByPolicy: if the policy does so by itself, as auto does. It does if what is
	// hidden in the request saves at least what these entries cost more to write, so
	// that no request costs more than without furl.
	HourByPolicy HourCache = iota
	HourAlways             // under any policy, whatever is hidden
	HourNever
)

// Codec is one provider's wire format. Codecs are pure, safe for concurrent
// use, and do not access the network.
type Codec interface {
	Format() furl.Format

	// DecodeRequest decodes a request body, keeping every byte. The body must
	// not be changed afterwards. Endpoint.Complete adds what the path says.
	DecodeRequest(body []byte) (*Request, error)

	// DecodeMessage decodes and seals one element of the request's list. The
	// Message aliases raw.
	DecodeMessage(raw []byte) (*furl.Message, error)

	// EncodeMessage returns the wire elements of a shown message: its Raw
	// bytes, with changed blocks spliced in, or built from the blocks if it has
	// no bytes of this format. The result may be empty or have several
	// elements.
	EncodeMessage(s furl.Shown) ([]json.RawMessage, error)

	// EncodeRequest applies a view to req's body. The shown message with Index
	// i is req.Messages[i]. A view without changes returns the body itself.
	EncodeRequest(req *Request, v *furl.View) ([]byte, error)

	// NewMessage builds a message of this format from blocks.
	NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error)

	// Validate checks a request against the provider's rules. It returns nil or
	// a *Refusal with the provider's error text.
	Validate(req *Request, m furl.Model) error
}

// Hints are what a request says about its session beside its messages.
type Hints struct {
	// Session is furl's id of the session, if the client was told one. There is
	// such a session from then on.
	Session furl.SessionID
	// Hint is the client's own id of the session. Equal ones bind, different ones
	// separate.
	Hint string
	// Parent is the client's own id of the session that started this one as a
	// sub-agent.
	Parent string
	// SubAgent is set if a header says that a sub-agent sends the request.
	SubAgent bool
	// Client names the agent.
	Client string
}
