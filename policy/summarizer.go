package policy

import (
	"context"

	"github.com/furlhq/furl"
)

// Summarizer writes summaries. It is the only part of a policy that may call a
// model, so it may take time and fail. An implementation whose program reports
// events sends event.SummaryRequested itself.
//
// Implementations must be safe for concurrent use, must not execute tool calls in
// the model's reply, and must return when ctx ends.
type Summarizer interface {
	// Summarize returns a summary of the units r.Hide. An error or a Summary
	// without text changes nothing.
	Summarize(ctx context.Context, r SummaryRequest) (Summary, error)
}

// SummaryWindower is an optional interface of a Summarizer that calls another
// model than the session's, such as a cheaper one. SummaryWindow returns the
// window of that model, in tokens of the session's model. Requests then fit it.
type SummaryWindower interface{ SummaryWindow() int }

// SummaryRequest is a request for a summary.
type SummaryRequest struct {
	// View is what the model sees now, with its tools. A request that begins
	// with it is read from the provider's cache. If that is too large for the
	// summarizer, it is a smaller view that was never sent.
	View *furl.View
	// Lighter reports that View is such a smaller view.
	Lighter bool
	// Hide are the units of View that the summary will replace, oldest first.
	Hide []furl.Unit
	// Part reports that a person or a model has chosen Hide. A request that ends with
	// Prompt could not say which messages of View these are, so it has only their texts.
	Part bool
	// Prompt asks the model for the summary.
	Prompt string
	// MaxTokens is the longest summary to accept, in the provider's tokens.
	MaxTokens int
	// Apart, if not zero, is the size in counted tokens of the text that an agent
	// sends for this summary in place of View. It is for the costs of a replay.
	Apart  int
	Budget furl.Budget
}

// Summary is what a Summarizer wrote.
type Summary struct {
	Text  string
	Model string // that wrote it
	// Usage is that of the request. Cost is its price in US dollars if another
	// model than the session's wrote the summary; zero if unknown.
	Usage furl.Usage
	Cost  float64
	// CutOff reports that the model stopped at a limit before it was done. Such
	// a summary is not used.
	CutOff bool
}
