package furlhttp

import (
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// Hooks are called while a request is served, for metrics, traces and logs. Each
// may be nil. They run on the goroutines that send the request and read its
// reply, and must not block.
type Hooks struct {
	// Passed is called for a request to a model that is sent unchanged and not
	// recorded. err is the decoding error for PassedUndecoded, else nil.
	Passed func(why Passed, err error)
	// Decoded is called with each request to a model.
	Decoded func(req *protocol.Request)
	// Prepared is called before an exchange is sent.
	Prepared func(x *session.Exchange)
	// Shortened is called when the provider has refused a prompt as too long,
	// before a shorter one is sent.
	Shortened func(x *session.Exchange)
	// ThinkingLeftOut is called when the provider has refused thinking in a prompt,
	// before the prompt is sent without it.
	ThinkingLeftOut func(x *session.Exchange)
	// Sent is called once for an exchange: when the header of the response has
	// arrived, or with the error of the request.
	Sent func(x *session.Exchange, err error)
	// Replied is called for each reply of the provider after it was recorded.
	Replied func(x *session.Exchange, r Reply)
	// Panicked is called with the value of a panic in furl. The request is then
	// sent unchanged. If nil, panics are not recovered.
	Panicked func(value any)
}

// Passed is the reason why a request is sent unchanged, or not at all, and not
// recorded as a request.
type Passed uint8

// The reasons.
const (
	PassedBypass    Passed = iota // it has the header X-Furl-Bypass
	PassedUndecoded               // it is not in the API's format
	PassedTooLarge                // it is larger than Options.MaxBody
	PassedAuxiliary               // it is auxiliary, such as a request for a title or for a summary of a conversation that it quotes
	// PassedCommand is for a request that is not sent at all: furl has answered it,
	// because it is a command to furl (session.Options.Commands).
	PassedCommand
)

// Reply is one reply of the provider. An exchange has several if the model
// calls recall tools.
type Reply struct {
	// Reply is never nil. It is empty if nothing could be decoded.
	*protocol.Reply
	// Fit is the prompt that it replies to.
	Fit *session.Fit
	// Recalls is the number of answered calls of recall tools in the reply.
	Recalls int
	// DecodeErr is the decoding error, Unrecorded the error of recording, and Cut
	// the error that cut the reply off.
	DecodeErr, RecordErr, CutErr error
	// Last is set on the last reply of the exchange.
	Last bool
}

func (h *Hooks) passed(why Passed, err error) {
	if h.Passed != nil {
		h.Passed(why, err)
	}
}

func (h *Hooks) decoded(req *protocol.Request) {
	if h.Decoded != nil {
		h.Decoded(req)
	}
}

func (h *Hooks) prepared(x *session.Exchange) {
	if h.Prepared != nil {
		h.Prepared(x)
	}
}

func (h *Hooks) shortened(x *session.Exchange) {
	if h.Shortened != nil {
		h.Shortened(x)
	}
}

func (h *Hooks) thinkingLeftOut(x *session.Exchange) {
	if h.ThinkingLeftOut != nil {
		h.ThinkingLeftOut(x)
	}
}

func (h *Hooks) sent(x *session.Exchange, err error) {
	if h.Sent != nil {
		h.Sent(x, err)
	}
}

func (h *Hooks) replied(x *session.Exchange, r Reply) {
	if h.Replied != nil {
		h.Replied(x, r)
	}
}
