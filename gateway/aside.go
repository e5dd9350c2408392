package gateway

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// aside reports whether a request stands beside the conversation whose id it
// carries, and shares nothing with it: a title that a client asks for itself. A
// summary that it asks for brings the history, and is a branch of the session:
// it would be too long, or have broken pairs, without what is hidden there.
func aside(req *furl.Request, hints session.Hints) bool {
	if hints.Hint == "" || hints.Session != "" {
		return false
	}
	// Without tools and without an answer of the model in it, under the id of
	// a session: a title or the like. A chat without tools that begins so is
	// recorded from its second request on, which holds the first.
	for i := range req.Messages {
		if req.Messages[i].Role == furl.RoleAssistant {
			return false
		}
	}
	for i := range req.Preamble {
		if req.Preamble[i].Kind == furl.KindOpaque {
			return false
		}
	}
	return true
}
