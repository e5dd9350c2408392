package storage

import "time"

// Plan is what a provider has said about the limits of an account.
type Plan struct {
	At time.Time `json:"at"`
	// Status is allowed, allowed_warning or rejected, "" if the provider does not say.
	Status  string       `json:"status,omitempty"`
	Windows []PlanWindow `json:"windows"`
}

// PlanWindow is a limit of an account over a time.
type PlanWindow struct {
	// Name is such as 5h and 7d; requests and tokens are the rates of an API key.
	Name string `json:"name"`
	// Minutes is the time that the limit is over, 0 if it is unknown.
	Minutes int `json:"minutes,omitempty"`
	// Used is the used share, where 1 is the limit, and Step the smallest change that the
	// provider reports.
	Used   float64   `json:"used"`
	Step   float64   `json:"step,omitempty"`
	Status string    `json:"status,omitempty"`
	Resets time.Time `json:"resets,omitzero"`
	// Share is what the session has used of the limit since it was reset: the changes of
	// Used between responses, shared by the costs of the requests between them. What is
	// used elsewhere at the same time is included, so it is an upper bound.
	Share float64 `json:"share,omitempty"`
	// Request is the share of one request, the newest that ran alone between two
	// responses; 0 is less than Step. It is nil if several ran between them.
	Request *float64 `json:"request,omitempty"`
}
