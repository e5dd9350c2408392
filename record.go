package furl

import (
	"time"
)

// Seq numbers the records of one session from 1 in the order they were
// appended. Zero is not a record; as a parent it marks a root.
type Seq uint64

// Actor says on whose behalf a record was appended.
type Actor uint8

// The actors.
const (
	Client   Actor = iota // the agent that sends requests
	Upstream              // the model
	Furl                  // a policy
	Person                // somebody at the page or the command line
	Import                // read from another agent's recording
)

var actorNames = [...]string{"client", "upstream", "furl", "person", "import"}

func (a Actor) String() string {
	if int(a) < len(actorNames) {
		return actorNames[a]
	}
	return "actor"
}

// Record is one entry of a session's log. Records are never changed.
type Record struct {
	Seq    Seq
	Parent Seq // 0: a root
	At     time.Time
	By     Actor
	Body   Body
	// Chain is the chain of digests of the path up to and including a message
	// (Message.Extend), by which a resent history is matched. Log.Append sets
	// it.
	Chain Digest
}

// Body is what a record says: *Message, *Reduction, *Restoration, *Takeover,
// *Exchange or *Head. Stores also have *Sealed.
type Body interface{ body() }

func (*Message) body()     {}
func (*Reduction) body()   {}
func (*Restoration) body() {}
func (*Exchange) body()    {}
func (*Head) body()        {}

// Pos addresses a block: a message by its record, a block by its index.
type Pos struct {
	Msg   Seq
	Block int
}

// Span is a run of blocks along a path, both ends included.
type Span struct{ First, Last Pos }

// Reduction shows something else in place of blocks. Of several reductions of a
// block, the newest wins.
type Reduction struct {
	Stage  string // "mask", "truncate", …; the stage that made it
	Items  []Item
	Reason string // why, for people
	// Before and After are the estimated sizes of the whole view, in the
	// provider's tokens.
	Before, After int
	// Scale is the provider's tokens per counted token when the reduction was
	// planned. Zero: 1.
	Scale float64
	// Cost explains the money side, where prices are known.
	Cost Cost
	// Copy is the reduction of another branch that this one repeats, in records
	// of version 1. Newer records use a Takeover.
	Copy Seq
	// Summary describes a compaction or an extract.
	Summary *Summary
}

// StageClient is the stage of reductions that record what a client has changed or left
// out in its own history.
const StageClient = "client"

// StageRefusedThinking is the stage of reductions, and of plan steps, that leave out thinking
// that the provider has refused.
const StageRefusedThinking = "refused-thinking"

// Item covers blocks and says what is shown for them.
type Item struct {
	Spans []Span
	Show  Show
}

// Show is what an item shows: In, Mark or Gone.
type Show interface{ show() }

// In shows another text in the block's envelope: the text of a result or text
// block, a call's arguments (then Text is valid JSON), or the place of an
// image. Id, name, error flag and cache mark stay.
type In struct {
	Text   string
	Tokens int // size of what is shown, envelope included
	// Note is a remark for readers, such as the age of a result in steps.
	Note string
}

// Mark shows messages of furl's own in place of whole steps.
type Mark struct {
	// Messages are empty if the client has left the steps out itself.
	Messages []*Message
	// At is the time the mark shows beside itself, zero for none.
	At time.Time
}

// Gone shows nothing. It is allowed on thinking blocks only.
type Gone struct{}

func (In) show()   {}
func (Mark) show() {}
func (Gone) show() {}

// Summary is what a compaction records beside the text it shows.
type Summary struct {
	Number   int    // counts up along the path, from 1
	Text     string // the summary alone
	Messages int    // messages newly hidden by it
	Model    string // that wrote it; "" for an extract
	Usage    Usage  // of the request that wrote it
	Request  string // what the model was asked; "" if no model was asked
}

// Cost is the expected effect of a reduction on the bill, in US dollars; zero
// if prices are unknown.
type Cost struct {
	Rewrite    float64 `json:"rewrite"`     // once: what follows the first edit is written again
	PerRequest float64 `json:"per_request"` // saved on each later request
	Remaining  float64 `json:"remaining"`   // expected further requests
	Own        float64 `json:"own"`         // spent on making it (a summary)
}

// Hold says whether stages may hide a block; zero says nothing.
type Hold uint8

// The holds, weakest first.
const (
	Release Hold = iota + 1 // give up an earlier keep or pin
	Keep                    // hide only when the target cannot be reached otherwise
	Pin                     // never hide
)

// Restoration undoes the reduction Of, if that is set. Otherwise, if Open is
// set, it shows the originals of Spans through every reduction; else it only
// records Hold for them. What it shows again is kept, unless Hold says
// otherwise.
type Restoration struct {
	Of    Seq
	Open  bool
	Spans []Span
	Hold  Hold
}

// Exchange is one request to the model. Its parent is the record whose view was
// sent; the reply follows it.
type Exchange struct {
	Model      string
	Preamble   Digest // of system and tools
	View       Digest // of the rendered view, thinking left out; see View.Prefix
	Thinking   Pos    // the last thinking block the view showed, zero if none
	Usage      Usage
	Passes     Passes // nil: one
	Terms      Terms  // under which it was billed
	ResponseID string
	Stop       string // why the model stopped, in the provider's word, or StopUnstated
	Plan       []PlanStep
	// Estimated is the prompt size that furl expected, in the provider's
	// tokens.
	Estimated int
	// Request describes the bodies of the request.
	Request RequestParts
}

// StopUnstated is the Stop of a whole reply whose provider does not say why the model stopped,
// as some servers of Chat Completions. That of a reply which was cut off is empty.
const StopUnstated = "unstated"

// LargestPrompt returns the size of the largest prompt of the request that its model has
// answered, in the provider's tokens: of a pass, if there were several.
func (x *Exchange) LargestPrompt() int {
	largest := x.Usage.Prompt()
	for i := range x.Passes {
		if p := &x.Passes[i]; p.OnConversation() && (p.Model == "" || p.Model == x.Model) {
			largest = max(largest, p.Usage.Prompt())
		}
	}
	return largest
}

// RequestParts describe the body of a request as the client sent it and as furl
// sent it, so that both can be rebuilt byte for byte from the messages of the
// log and the contents of the session (storage.Batch.Contents). Package
// internal/rebuild has the formats. The zero value says that the bodies were
// not recorded.
type RequestParts struct {
	// Frame is the content that has the client's body without system, tools and
	// the elements of the message list. System and Tools are those values.
	// Zero: the body has no such field, or Received says that the value is that
	// of an earlier exchange.
	Frame, System, Tools Digest
	// Received says how the client's body differs from the one of an earlier
	// exchange, and its message list from the messages of the log.
	Received string
	// Sent says how the body that furl sent differs. Empty: it is the
	// client's.
	Sent string
}

// Head makes its record's parent the current position: a rewind, or a switch to
// another branch. It is not part of any path.
type Head struct {
	From Seq // where the conversation stood before
}

// Tenant separates the users of one store: a keyed hash of a credential, or ""
// for a single user.
type Tenant string

// SessionID names a session among those of its tenant. It has 1 to 128
// characters out of letters, digits and _ . -, and is not reserved; see
// storage.ValidID.
type SessionID string

// SessionKey says where a session is: every row of a store carries both.
type SessionKey struct {
	Tenant  Tenant
	Session SessionID
}
