package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// Summarizer writes the summaries that compaction shows. It is the one part
// of a policy that may ask a model, so it may take time and fail.
//
// Implementations must be safe for concurrent use, must not execute tool calls
// the model makes in its reply, and must honour ctx.
type Summarizer interface {
	// Summarize returns a summary of what r.Hide stands for. An error, or a
	// Summary without text, changes nothing.
	Summarize(ctx context.Context, r SummaryRequest) (Summary, error)
}

// SummaryRequest is what a Summarizer has to go by.
type SummaryRequest struct {
	// View is what the model sees now. A request that begins with it finds
	// it in the provider's cache.
	View *furl.View
	// Hide are the units of View the summary will stand for, oldest first.
	Hide []furl.Unit
	// Prompt asks for the summary.
	Prompt string
	// MaxTokens is the longest summary of use, in the provider's tokens.
	MaxTokens int
	Budget    furl.Budget
}

// Summary is what a Summarizer wrote.
type Summary struct {
	Text  string
	Model string // that wrote it
	// Usage of the request, for the bill.
	Usage furl.Usage
	// CutOff says that the model stopped at a limit before it was done; such
	// a summary is not used.
	CutOff bool
}
