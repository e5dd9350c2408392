package open

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
)

// Preparation holds the functions by which a session prepares a request. They may be
// called more than once if the session changes meanwhile, and must then start over.
type Preparation struct {
	// Append, if not nil, appends the new messages of the request.
	Append func(c *Change) error
	// Prompt returns the other parts of the request.
	Prompt func(c *Change) Prompt
	// Encode, if not nil, is called with the planned prompt.
	Encode func(c *Change, fit *policy.Fit) error
	// Committed, if not nil, is called after Prepared.Commit has recorded the request, before
	// another change of the session.
	Committed func(c *Change)
	// Now is the time of the request and of its records. If zero, defaults to the clock's
	// time.
	Now time.Time
	// NoModel disables summaries written by a model during the plan. AskModel is
	// set if Prompt.Adjust sets a summarizer.
	NoModel, AskModel bool
}

// Prompt has the parts of a request other than the session's messages, and options
// of its plan.
type Prompt struct {
	// Model is the model's name in requests.
	Model string
	// Preamble is what is sent in addition to the messages: instructions as text
	// blocks, and each tool as an opaque block with its JSON as the text. It counts
	// and is never reduced. Digest identifies it.
	Preamble []furl.Block
	Digest   furl.Digest
	// Tail are messages that are sent after those of the path.
	Tail []furl.Message
	// MaxTokens is the requested maximum size of the reply in tokens, 0 if unset.
	MaxTokens int
	// Cache says which cache entries the request asks for. If its Lifetime is 0,
	// they live as long as those of earlier requests.
	Cache protocol.CacheRequest
	// HourCache says when the request asks for cache entries of one hour for
	// instructions and tools.
	HourCache protocol.HourCache
	// Refused is the provider's error if it refused the prompt as too long, else
	// nil. Window is the context window by that error, 0 if unknown.
	Refused *protocol.Overflow
	Window  int
	// Policy is the name of the policy. If empty, defaults to that of the session.
	Policy string
	// Budget is the largest prompt in tokens, if that is less than the window leaves; 0:
	// no such limit.
	Budget int
	// ThinkingRefused is set if the provider has refused thinking in the prompt. All
	// of it is then left out, unless the session hides nothing and its policy never
	// does.
	ThinkingRefused *protocol.ThinkingRefused
	// Force plans even below the policy's trigger.
	Force bool
	// DryRun plans without recording the plan. The fit's view shows everything
	// that the client has not changed itself.
	DryRun bool
	// Unbound reports that a dry run's prompt is not the view, so no thinking is
	// bound to the view.
	Unbound bool
	// Adjust, if not nil, returns the settings for this plan, made from those of
	// the session.
	Adjust func(policy.Settings) policy.Settings
	// Now is the time of the plan. If zero, defaults to the clock's time.
	Now time.Time
}
