// Package furl keeps long-running LLM agents inside their context window
// without losing anything. This package holds its values and pure functions;
// everything with a socket, a file or a clock sits in other packages and calls
// in.
//
// # The log
//
// A session is an append-only [Log] of records. A [Record] names its parent,
// so the log is a tree, and a conversation is a path from a root to a head.
// Six kinds of body carry everything:
//
//   - [Message]: one message, its decoded [Block] values beside the bytes it
//     had on the wire.
//   - [Reduction]: show something else for these blocks. Its items say what:
//     [In] another text in the same envelope, a [Mark] in place of whole
//     steps, or [Gone] for old thinking.
//   - [Restoration]: lift one reduction, or open blocks through every layer,
//     or keep, pin and release them.
//   - [Exchange]: one request to the model, and what it reported.
//   - [Takeover]: what is hidden, shown again, kept and pinned on another branch
//     holds on this one too, without repeating it.
//   - [Head]: the conversation goes on from another record.
//
// # State and view
//
// A [State] is the fold of a path. It paints each reduction over the blocks it
// covers, in path order, so that each block ends up with the newest layer that
// covers it; lifting one paints all others anew. A [View] is what the model
// sees: a pure function of the state and the model's capabilities. It groups
// what is visible into units (a whole step, words of the user, or a mark with
// all it stands for), so that a stage which hides whole units cannot part a
// call from its result.
//
// # Plans
//
// A [Policy] looks at a state and a [Budget] and returns a [Plan]: reductions
// to append before the next request. Package policy has the stages and the
// presets. Wire formats are behind [Codec]: what no reduction touches leaves as
// the bytes that came.
//
// # Laws
//
// These hold for every sequence of appends, late results, reductions of every
// kind, lifts, openings, pins, rewinds, branches, takeovers, switches back,
// summaries committed late and reloads. TestLaws holds them in each wire family.
//
//   - Identity: without reductions the view is the recorded messages, byte for
//     byte.
//   - Reversibility: with every active reduction lifted, it is so again.
//   - Append-only: no record ever changes.
//   - Determinism: the same path and capabilities give the same bytes; the
//     same state and budget give the same plan.
//   - Pairing: every call shown has its result and the other way round. A user
//     message after a call without result is refused ([ErrOpenCall]).
//   - Prefix stability: while nothing is reduced or restored, the rendered
//     messages of a view are a prefix of the next view's.
//   - Progress: a reduction frees at least its minimum or is not recorded, and
//     a plan says why when its view is still too large.
//   - Cover: each block is shown as recorded, or by exactly one reduction, the
//     newest active one that covers it. A text in place does not bring back
//     what a mark hides; it shows once the mark is lifted.
//   - Takeover: a message that is on two branches is shown on the newer one as
//     on the older one, by the same reduction, if all that the older one hides
//     is on the newer one too.
//   - Idempotent append: repeating an append adds nothing; appending after a
//     record that is no longer the head is refused ([ErrConflict]).
//   - Recall: what a view does not show can be found and returned exactly.
//
// Thinking is derived, not recorded: on models that bind it to what stood
// before (see [Thinking]), a view shows a thinking block only if its prefix
// renders the same now as when it was written.
package furl
