package session

import (
	"time"

	"github.com/furlhq/furl/event"
)

// Exchange is one request of a client and its reply, as package furlhttp reports it
// (furlhttp.Hooks).
type Exchange struct {
	// Body is the request body to send. Reduced reports whether it differs from
	// the client's body.
	Body    []byte
	Reduced bool
	// Session is the session that records the exchange, nil if it is not
	// recorded. Committed reports whether the request is recorded.
	Session   *Session
	Committed bool
	// Fit is the planned prompt, nil without a session.
	Fit *Fit
	// Why is why the request was not recorded or reduced, "" if it was. Clients
	// may read it. Err is the underlying error, if any.
	Why string
	Err error
	// Dry reports whether this is a dry run: the reductions of Fit.Plan are
	// neither recorded nor applied.
	Dry bool
	// Took are the durations of furl's stages before the request is sent.
	Took struct {
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
