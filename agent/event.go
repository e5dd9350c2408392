package agent

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/tool"
)

// Event is something that happened in a run. It is one of the types of this package
// with a method isEvent. Texts come from the model, tools and providers: escape
// control characters before printing them.
type Event interface{ isEvent() }

// TextDelta is the next piece of the reply's text.
type TextDelta struct{ Text string }

// ThinkingDelta is the next piece of the reply's thinking.
type ThinkingDelta struct{ Text string }

// CallWriting reports that the model starts to write a call. Its input follows in
// CallStarted, when the reply is complete.
type CallWriting struct{ ID, Name string }

// Replied reports that a reply is recorded.
type Replied struct {
	Model string
	Usage furl.Usage
	// Stop is why the reply ended, in the provider's words.
	Stop string
	// Text is the text of the reply.
	Text string
	// Account is the cost of the request. It may be nil.
	Account *price.Account
}

// Call is a call of a tool.
type Call struct {
	ID, Name string
	// Input is a JSON object as written by the model, not validated.
	Input json.RawMessage
}

// ApprovalNeeded reports that a call waits for Options.Approve.
type ApprovalNeeded struct {
	Call    Call
	Preview tool.Preview
}

// CallStarted reports that a call runs. A call that is refused has only a
// CallResult.
type CallStarted struct{ Call Call }

// CallResult reports that the result of a call is recorded. Results come in the order
// of the calls.
type CallResult struct {
	Call   Call
	Result tool.Result
	Took   time.Duration
}

// Delivered reports that input of the user is recorded. The next request has it.
type Delivered struct {
	Input  Input
	Record furl.Seq
}

// Context is an event of the session's context: a reduction, the usage of the window,
// a warning.
type Context struct {
	Record furl.Seq
	Event  event.Event
}

// SummaryStarted reports that a model is asked for a summary. The run waits for it.
type SummaryStarted struct{ Model string }

// SummaryFailed reports that there is no summary. Other stages of the policy make the
// context fit.
type SummaryFailed struct{ Err error }

// Retry reports that a request failed and is sent again after a wait. The deltas since
// the last Replied are void.
type Retry struct {
	Attempt int // 1 for the first retry
	Wait    time.Duration
	Err     error
}

// Done is the last event of a run that ended by itself.
type Done struct {
	// Stop is why the last reply ended, in the provider's words, "" if there was
	// nothing to send.
	Stop string
	// MaxSteps reports that the run ended because of Options.MaxSteps. Run continues
	// it.
	MaxSteps bool
}

func (TextDelta) isEvent()      {}
func (ThinkingDelta) isEvent()  {}
func (CallWriting) isEvent()    {}
func (Replied) isEvent()        {}
func (ApprovalNeeded) isEvent() {}
func (CallStarted) isEvent()    {}
func (CallResult) isEvent()     {}
func (Delivered) isEvent()      {}
func (Context) isEvent()        {}
func (SummaryStarted) isEvent() {}
func (SummaryFailed) isEvent()  {}
func (Retry) isEvent()          {}
func (Done) isEvent()           {}
