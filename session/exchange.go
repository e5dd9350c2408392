package session

import (
	"time"

	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
)

// Exchange is one request of a client and its reply, as package furlhttp reports it
// (furlhttp.Options).
type Exchange struct {
	// Passed is why the request is sent unchanged, or not at all, without looking for its
	// session; 0 if neither. The fields about sessions and plans are zero then.
	Passed Passed
	// Body is the request body to send. Reduced reports whether it differs from
	// the client's body.
	Body    []byte
	Reduced bool
	// Session is the session that records the exchange, nil if it is not
	// recorded. Committed reports whether the request is recorded.
	Session   *Session
	Committed bool
	// Fit is the planned prompt, nil without a session.
	Fit *policy.Fit
	// Why is why the request was not recorded or reduced, "" if it was. Clients
	// may read it. Err is the underlying error, if any.
	Why string
	Err error
	// Dry reports whether this is a dry run: the reductions of Fit.Plan are
	// neither recorded nor applied.
	Dry bool
	// Took are the durations of furl's stages before the request is sent.
	Took struct {
		// Decode is for decoding the request.
		Decode time.Duration
		// Match is for finding the session and the position of the history in it.
		Match time.Duration
		// Plan is for planning, Encode for encoding the body.
		Plan, Encode time.Duration
		// Store is for writing records, and for waiting for other writes to the
		// same session.
		Store time.Duration
	}
	// AskNothing reports that furl must not send a question or a ping after this request:
	// its reply replaces the history, or the provider has the start of the history.
	AskNothing bool
	// Recovered describes the provider's refusal of a prompt as too long, nil if
	// there was none.
	Recovered *event.OverflowRecovered
	// ThinkingLeftOut reports that the provider has refused thinking in the prompt and
	// that it was sent again without.
	ThinkingLeftOut bool
}

// Passed is the reason why a request is not recorded as one of a conversation.
type Passed uint8

// The reasons.
const (
	PassedBypass    Passed = iota + 1 // the client asks for it (furlhttp.HeaderBypass)
	PassedUndecoded                   // it is not in the API's format; Exchange.Err says why
	PassedTooLarge                    // it is larger than furlhttp.Options.MaxBody, or has too many parts
	PassedAuxiliary                   // it is auxiliary, such as a request for a title or for a summary of a conversation that it quotes
	// PassedCommand is for a request that is not sent at all: furl has answered it,
	// because it is a command to furl (Options.Commands).
	PassedCommand
	PassedThread // it is not sent: furl asks the client for the whole history instead
	PassedPanic  // furl has panicked; Exchange.Err is a *PanicError
)

// PanicError is the error for a panic in furl.
type PanicError struct {
	// Text is the value of the panic without content of messages.
	Text  string
	Stack []byte
}

func (e *PanicError) Error() string { return "furl panicked: " + e.Text }

// Reply is one reply of the provider in an exchange, which has several if the model calls
// recall tools.
type Reply struct {
	// Reply is never nil. It is empty if nothing could be decoded.
	*protocol.Reply
	// Fit is the prompt that it replies to.
	Fit *policy.Fit
	// Recalls is the number of answered calls of recall tools in the reply.
	Recalls int
	// DecodeErr is the decoding error, RecordErr the error of recording, and CutErr
	// the error that cut the reply off.
	DecodeErr, RecordErr, CutErr error
}
