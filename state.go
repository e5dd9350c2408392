package furl

// State is the fold of a path.
type State struct{}

// Unit is what may be hidden together.
type Unit struct{}

// PlanStep says what a stage did in a plan.
type PlanStep struct{}
