package session

import (
	"time"

	"github.com/furlhq/furl/event"
)

// Exchange is one request of a client on its way to the model and back, as package
// furlhttp tells of it (furlhttp.Hooks).
type Exchange struct {
	// Body is what to send: the request's own bytes, with the view's changes.
	// Reduced says that it differs from the one that came.
	Body    []byte
	Reduced bool
	// Session is where it is recorded, nil if it is not. Committed says that the
	// request is.
	Session   *Session
	Committed bool
	// Fit is what was planned, nil without a session.
	Fit *Fit
	// Why says why the request is sent as it came although that may not be what
	// was wanted, "" if all is well; clients may read it. Err is the cause, if
	// there was one.
	Why string
	Err error
	// Dry says that this is a dry run: what Fit.Plan holds is recorded nowhere
	// and hides nothing.
	Dry bool
	// Took is how long furl's part took.
	Took Took
	// Recovered tells of the prompt that the provider refused as too long, nil if
	// none was.
	Recovered *event.OverflowRecovered
}

// Took is how long the parts of an exchange took before the request could be
// sent.
type Took struct {
	// Match is for finding the session and where the history goes on in it.
	Match time.Duration
	// Plan is for deciding what to hide, Encode for making the body.
	Plan, Encode time.Duration
	// Store is for writing what is new, and for waiting until others have
	// done so in the same session.
	Store time.Duration
}
