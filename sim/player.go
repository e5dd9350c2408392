package sim

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Player answers requests instead of a model. It must be safe for concurrent
// use.
type Player interface {
	// Play returns the answer to a request that has passed all checks. It
	// must not keep or change the request. An error is sent as the provider's
	// 500 or, if it is a *protocol.Refusal, as that.
	Play(ctx context.Context, req *protocol.Request) (Reply, error)
}

// PlayerFunc is a function as a Player.
type PlayerFunc func(ctx context.Context, req *protocol.Request) (Reply, error)

// Play calls the function.
func (f PlayerFunc) Play(ctx context.Context, req *protocol.Request) (Reply, error) {
	return f(ctx, req)
}

// Reply is a model's reply.
type Reply struct {
	// Blocks are its thinking, texts and calls, in order. Calls without ID
	// get one, calls without Args get {}. The sim creates the signatures.
	Blocks []furl.Block
	// Stop is the stop reason in Anthropic's words: "end_turn", "tool_use",
	// "max_tokens", "stop_sequence", "refusal", "pause_turn". If empty, it
	// follows from the blocks. The other formats use their own words.
	Stop string
	// Fault applies to this answer, unless the request asks for another.
	Fault *Fault
}

// Text returns a reply of one text.
func Text(words string) Reply {
	return Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: words}}}
}

// hasCall reports whether the reply has a tool call.
func (r *Reply) hasCall() bool {
	for i := range r.Blocks {
		if r.Blocks[i].Kind == furl.KindCall {
			return true
		}
	}
	return false
}
