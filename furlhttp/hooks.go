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
	// recorded. The error says why it could not be decoded.
	Passed func(why Passed, err error)
	// Decoded is called with each request to a model.
	Decoded func(req *protocol.Request)
	// Begun is called before an exchange is sent.
	Begun func(x *session.Exchange)
	// Shortened is called when the provider has refused a prompt as too long,
	// before a shorter one is sent.
	Shortened func(x *session.Exchange)
	// Sent is called once for an exchange: when the header of the reply has
	// arrived, or with the error why there is none.
	Sent func(x *session.Exchange, err error)
	// Replied is called for each reply of the provider after it was recorded.
	Replied func(x *session.Exchange, r Reply)
	// Panicked is called with what furl's part panicked with. The request
	// is then sent unchanged. If nil, such a panic is the caller's.
	Panicked func(value any)
}

// Passed says why a request is sent unchanged and not recorded.
type Passed uint8

// The reasons.
const (
	PassedBypass    Passed = iota // it has the header X-Furl-Bypass
	PassedUndecoded               // it is not in the API's format
	PassedTooLarge                // it is larger than Options.MaxBody
	PassedAside                   // it does not belong to the conversation whose id it has
)

// Reply is one reply of the provider. An exchange has several if the model
// calls recall tools.
type Reply struct {
	// Reply is never nil. It is empty if nothing could be decoded.
	*protocol.Reply
	// Fit is what it replies to.
	Fit *session.Fit
	// Recalls counts the calls of recall tools in it that were answered.
	Recalls int
	// Unread says why it could not be decoded, Unrecorded why it could not be
	// recorded. Cut is what cut it off.
	Unread, Unrecorded, Cut error
	// Last says that no other reply follows in this exchange.
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

func (h *Hooks) begun(x *session.Exchange) {
	if h.Begun != nil {
		h.Begun(x)
	}
}

func (h *Hooks) shortened(x *session.Exchange) {
	if h.Shortened != nil {
		h.Shortened(x)
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
