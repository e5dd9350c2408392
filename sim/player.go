package sim

import (
	"context"

	"github.com/furlhq/furl"
)

// Player answers requests in the place of a model. It is called by several
// requests at once.
type Player interface {
	// Play gives the answer to a request that has passed all checks. It is
	// not to keep or change the request. An error is answered as the
	// provider's 500 or, if it is a *furl.Refusal, as that.
	Play(ctx context.Context, req *furl.Request) (Reply, error)
}

// PlayerFunc is a function as a Player.
type PlayerFunc func(ctx context.Context, req *furl.Request) (Reply, error)

// Play calls the function.
func (f PlayerFunc) Play(ctx context.Context, req *furl.Request) (Reply, error) { return f(ctx, req) }

// Reply is what a model says.
type Reply struct {
	// Blocks are its thinking, texts and calls, in order. Calls without ID
	// get one, calls without Args get {}. Signatures are the sim's own.
	Blocks []furl.Block
	// Stop is the reason in Anthropic's words: "end_turn", "tool_use",
	// "max_tokens", "stop_sequence", "refusal", "pause_turn". If empty, it
	// follows from the blocks. The other formats use their own words.
	Stop string
	// Fault happens to this answer, unless the request asks for another.
	Fault *Fault
}

// Text is a reply of words only.
func Text(words string) Reply {
	return Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: words}}}
}

// hasCall reports whether the reply asks for a tool.
func (r *Reply) hasCall() bool {
	for i := range r.Blocks {
		if r.Blocks[i].Kind == furl.KindCall {
			return true
		}
	}
	return false
}
