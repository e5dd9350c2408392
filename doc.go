// Package furl keeps long-running LLM agents inside their context window without
// losing anything. It contains values and pure functions; everything with a
// socket, a file or a clock is in other packages.
//
// # The log
//
// A session is an append-only [Log] of records. A [Record] names its parent, so
// the log is a tree, and a conversation is a path from a root to a head. The
// bodies are:
//
//   - [Message]: one message, decoded beside its bytes on the wire.
//   - [Reduction]: show something else in place of blocks: [In] another text, a
//     [Mark] for whole steps, or [Gone] for old thinking.
//   - [Restoration]: undo a reduction, expand blocks, or keep, pin and release
//     them.
//   - [Exchange]: one request to the model, and the usage it reported.
//   - [Takeover]: apply the reductions of another branch to this one.
//   - [Head]: continue from another record.
//
// # State and view
//
// A [State] is the fold of a path: for each block, the newest reduction that
// covers it. A [View] is what the model sees, a pure function of the state and the
// model's capabilities. It groups blocks into units, so that no stage separates a
// call from its result. A [Policy] plans, from a state and a [Budget], which
// reductions to append before the next request. Wire formats implement
// protocol.Codec; unchanged messages are sent as the bytes that were received.
//
// # Laws
//
// TestLaws checks these for random sequences of operations, in each wire format:
//
//   - Identity: without reductions, the view is the recorded messages, byte for
//     byte.
//   - Reversibility: the same holds after every reduction is undone.
//   - Append-only: no record ever changes.
//   - Determinism: the same path and capabilities give the same bytes; the same
//     state and budget give the same plan.
//   - Pairing: every visible call has its result, and every result its call. This
//     includes calls that the provider runs and answers in a later message.
//   - Prefix stability: while nothing is reduced or restored, the rendered messages
//     of a view are a prefix of the next view's.
//   - Progress: a reduction frees at least its minimum or is not recorded, and a
//     plan says why its view is still too large.
//   - Cover: each block is shown as recorded, or by exactly one reduction, the
//     newest active one that covers it. A text in place does not show again what a
//     mark hides.
//   - Takeover: a message on two branches is shown on the newer one as on the older
//     one, if all that the reduction hides is on both.
//   - Idempotent append: repeating an append adds nothing; appending after another
//     record than the head is [ErrConflict].
//   - Understanding: nothing that furl does not understand is hidden, split, moved or
//     reordered, and neither is what defines tools (see [State.Fixed]). Only
//     reductions by the client, by the provider or in an imported recording are exempt,
//     and thinking that the provider has refused.
//   - Recall: what a view does not show can be found and returned exactly.
//
// Thinking is derived: on models that bind it to its prefix (see [Thinking]), a
// view shows a thinking block only if its prefix renders as it did then.
package furl
