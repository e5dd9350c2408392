package furl

import (
	"time"
)

// Seq numbers the records of one session from 1 in the order they were
// appended. Zero is no record; as a parent it marks a root.
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
	// Chain ends, with a message, the chain of the digests of all messages
	// of its path (Message.Extend): by it the history that a client sends
	// again finds its place. Log.Append fills it in.
	Chain Digest
}

// Body is what a record says: *Message, *Reduction, *Restoration, *Takeover,
// *Exchange or *Head.
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

// Span is a run of blocks along the path of the record that holds it, both
// ends included.
type Span struct{ First, Last Pos }

// Reduction says: show something else for these blocks. Later reductions win
// over earlier ones, block by block.
type Reduction struct {
	Stage  string // "mask", "truncate", …; the stage that made it
	Items  []Item
	Reason string // why, for people
	// Before and After are the sizes of the whole view, in the provider's
	// tokens as estimated when the reduction was planned.
	Before, After int
	// Scale is what one counted token was taken for in the provider's when
	// the reduction was planned. Zero: 1.
	Scale float64
	// Cost explains the money side, where prices are known.
	Cost Cost
	// Copy is the reduction on another branch that this one repeats. Records
	// of version 1 have it; since then a Takeover refers to such reductions.
	Copy Seq
	// Summary holds what a compaction or an extract says about itself.
	Summary *Summary
}

// StageEvict is the stage of a reduction whose marks tell of eviction, which
// readers hear of in an event of its own.
const StageEvict = "evict"

// StageOverflow is the stage of a step in an exchange's plan that tells of a
// prompt which the provider refused as too long, before the one of the exchange
// was sent: Before is the size it gave, After the most it takes, 0 where it did
// not say, and Skipped says so in words.
const StageOverflow = "overflow"

// Item covers blocks and says what is shown for them.
type Item struct {
	Spans []Span
	Show  Show
}

// Show is what an item shows: In, Mark or Gone.
type Show interface{ show() }

// In shows another text in the block's own envelope: a result's or text
// block's words, a call's arguments (Text is then valid JSON), an image's
// place. Id, name, error flag and cache mark stay.
type In struct {
	Text   string
	Tokens int // size of what is shown, envelope included
	// Note holds what a reader may want to know about what was replaced,
	// such as the age in steps at which a result was hidden.
	Note string
}

// Mark shows messages of furl's own in place of whole steps.
type Mark struct {
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
	Request  string // what the model was asked; "" if nobody asked one
}

// Cost is what a reduction is expected to do to the bill, in US dollars. All
// zero when no price is known.
type Cost struct {
	Rewrite    float64 `json:"rewrite"`     // once: what stays behind the first edit is written again
	PerRequest float64 `json:"per_request"` // saved on each later request
	Remaining  float64 `json:"remaining"`   // expected further requests
	Own        float64 `json:"own"`         // spent on making it (a summary)
}

// Hold says whether stages may hide a block.
type Hold uint8

// The holds, weakest first.
const (
	HoldNone Hold = iota // no opinion recorded
	Release              // give up an earlier keep or pin
	Keep                 // hide only when the target cannot be reached otherwise
	Pin                  // never hide
)

// Restoration lifts one reduction, or opens blocks, or only holds them.
//
//   - Of set: the reduction Of no longer counts; what lies beneath it shows.
//   - Of zero, Open true: the originals of Spans show through every layer.
//   - Otherwise only Hold is recorded for Spans.
//
// What a lift or an open shows again is kept, unless Hold says more.
type Restoration struct {
	Of    Seq
	Open  bool
	Spans []Span
	Hold  Hold
}

// Exchange is one request to the model. Its parent is the record whose view
// was sent; the reply follows it.
type Exchange struct {
	Model      string
	Preamble   Digest // of system and tools
	View       Digest // of the rendered view, thinking left out; see View.Prefix
	Thinking   Pos    // the last thinking block the view showed, zero if none
	Usage      Usage
	ResponseID string
	Stop       string // why the model stopped, in the provider's word
	Plan       []PlanStep
	// Estimated is the prompt size furl expected, in the provider's tokens.
	Estimated int
}

// Head says that the conversation goes on from its record's parent: a rewind
// or a switch to another branch. It is not part of any path.
type Head struct {
	From Seq // where the conversation stood before
}
