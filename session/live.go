package session

import "fmt"

// Configure changes how sessions are kept and planned, from the next request
// on: Catalog, Window, Policy, PolicyOptions, NewPolicy, Summaries, Recall and
// Refuse of the options. All else stays as New was told. What is under way goes
// on as it began. Options that make no sense are an error and change nothing.
func (a *shared) Configure(opts *Options) error {
	o := *a.live()
	if opts == nil {
		opts = &Options{}
	}
	o.Catalog, o.Window = opts.Catalog, opts.Window
	o.Policy, o.PolicyOptions, o.NewPolicy = opts.Policy, opts.PolicyOptions, opts.NewPolicy
	o.Summaries, o.Recall, o.Refuse = opts.Summaries, opts.Recall, opts.Refuse
	o.defaults()
	if _, err := o.NewPolicy(o.Policy, o.PolicyOptions); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	a.current.Store(&o)
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.models) // they were looked up in the old catalogue
	clear(a.preambles)
	return nil
}

// live are the options as they are now.
func (a *shared) live() *Options { return a.current.Load() }
