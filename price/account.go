package price

// Account is the cost of a request, and its estimated cost without reductions.
// Costs are in US dollars.
type Account struct {
	// Priced reports whether the prices of all models of the request are known.
	// Otherwise all costs are 0.
	Priced bool
	// Cost is the cost of the reported usage, of all passes of the request.
	Cost float64
	// Without is the estimated cost without reductions, for an agent that compacts
	// before its window is full; WithoutMost that for an agent that loses nothing and
	// whose prompts end at the window. Both equal Cost if nothing is hidden.
	Without, WithoutMost float64
	// Prompt is the reported size of the prompt in tokens, the estimated one if
	// the provider has reported none. PromptWithout and PromptMost are the sizes without
	// reductions, for the same two agents.
	Prompt, PromptWithout, PromptMost int
	// Over reports whether the prompt would have exceeded the model's context
	// window without reductions and compactions.
	Over bool
	// Own is the cost of the summaries that were recorded since the previous
	// request, OwnTokens the tokens of their requests and replies.
	Own       float64
	OwnTokens int
	// Hidden is by how much the prompt is smaller than the client's, in the
	// provider's tokens and without thinking.
	Hidden int
	// Break is why the prompt cache of the previous request was not used:
	// planned, client, model, preamble, expired or unexpected; "" if it was.
	Break string
	// Refetched is the number of calls in the reply that repeat an earlier call,
	// with the same name and arguments, whose results are all hidden.
	Refetched int
}
