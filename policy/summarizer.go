package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// Summarizer writes the summaries that compaction shows. It is the one part
// of a policy that may ask a model, so it may take time and fail. Whoever has
// readers to tell that a summary was asked for (furl.SummaryRequested) does it
// from here.
//
// Implementations must be safe for concurrent use, must not execute tool calls
// the model makes in its reply, and must honour ctx.
type Summarizer interface {
	// Summarize returns a summary of what r.Hide stands for. An error, or a
	// Summary without text, changes nothing.
	Summarize(ctx context.Context, r SummaryRequest) (Summary, error)
}

// SummaryWindower is an optional ability of a Summarizer that asks another
// model than the session's, such as a cheaper one: the window of that model, in
// the tokens of the session's. What it is handed fits there.
type SummaryWindower interface{ SummaryWindow() int }

// SummaryRequest is what a Summarizer has to go by.
type SummaryRequest struct {
	// View is what the model sees now, with the tools it has: a request that
	// begins with it finds it in the provider's cache. Where that is too
	// large for a summarizer, it is a smaller view that was never sent, good
	// for nothing but reading.
	View *furl.View
	// Lighter says that View is such a smaller one.
	Lighter bool
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
	// Usage of the request, for the bill, and its price in US dollars where
	// the model's is not the session's; zero if it is, or not known.
	Usage furl.Usage
	Cost  float64
	// CutOff says that the model stopped at a limit before it was done; such
	// a summary is not used.
	CutOff bool
}
