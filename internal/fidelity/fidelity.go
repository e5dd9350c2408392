// Package fidelity measures how much of what the model uses later is still
// visible in a view. It examines one request of a recorded session and the
// reply of the recorded agent:
//
//   - A reference is a name (see lexer.Names) in the reply's text or in a string
//     of its calls' arguments that is in a block earlier on the path. It
//     is first-hand when it is in a tool result or in a message of the
//     user, of the system or of the developer, and in no earlier text or
//     argument of the assistant; otherwise it is the assistant's own. What
//     is in thinking is on the path, but makes nothing first-hand or own.
//   - A quoted line is a line of the reply's text or argument strings that
//     repeats one of an earlier tool result, see lexer.Fold and Variants.
//   - A repeat is a call with the name and arguments of an earlier one.
//   - An edit is a call that replaces text, of which at least one line of
//     minLine characters is on the path, see Replaced.
//
// The calls in a script are calls, and the texts in it are argument strings: see package
// toolscript.
//
// Names, lines and calls count once per request. They are still visible if a
// block that contains them is shown as recorded, or if a placeholder contains
// them. A repeat counts as a repeated call if the earlier call has a result
// and no such result is shown as recorded. An edit is blind if a line that it
// replaces is no longer visible: the agent would have had to read the file again.
//
// None of this depends on a policy: a Tracker goes over a recording once and
// returns a Reply for each request, and a Seen compares a Reply with any
// number of views.
package fidelity

import (
	"iter"

	"github.com/furlhq/furl"
)

// Reply is what a recorded reply uses from the path before it. It does not
// change when its Tracker continues.
type Reply struct {
	Refs    []Ref
	Lines   []Line
	Repeats []Repeat
	Edits   []Edit
	// Unmeasured reports whether the reply may make edits that are not in Edits: a script
	// calls tools with texts that are not in it.
	Unmeasured bool

	base []uint32 // number of the first block of each message before the reply
}

// Ref is a reference.
type Ref struct {
	Name      string
	FirstHand bool
	holders   []uint32 // numbers of the blocks that contain it
}

// Line is a quoted line.
type Line struct {
	Text    string // folded
	holders []uint32
}

// Repeat is a call that was made before.
type Repeat struct {
	Tool    string
	results []uint32
}

// Messages returns the number of messages before the reply.
func (r *Reply) Messages() int { return len(r.base) - 1 }

// Holders returns the blocks that contain a reference, in the order of the
// path: the index of the message, counting messages only as furl.Shown.Index
// does, and the index of the block in it.
func (r *Reply) Holders(ref Ref) iter.Seq2[int, int] { return r.places(ref.holders) }

// LineHolders returns the blocks that contain a quoted line, like Holders.
func (r *Reply) LineHolders(line Line) iter.Seq2[int, int] { return r.places(line.holders) }

func (r *Reply) places(numbers []uint32) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		msg := 0
		for _, n := range numbers {
			for r.base[msg+1] <= n {
				msg++
			}
			if !yield(msg, int(n-r.base[msg])) {
				return
			}
		}
	}
}

// Holds reports whether a block contains the reference.
func (r *Reply) Holds(ref Ref, msg, block int) bool {
	for m, b := range r.Holders(ref) {
		if m == msg && b == block {
			return true
		}
	}
	return false
}

// isOwn and isFirstHand say where the text of a block comes from.
func isOwn(role furl.Role, b *furl.Block) bool {
	return role == furl.RoleAssistant && b.Kind != furl.KindThinking && !b.IsResult()
}

func isFirstHand(role furl.Role, b *furl.Block) bool {
	return role != furl.RoleAssistant && b.Kind != furl.KindThinking || b.IsResult()
}
