package session

import "fmt"

// Configure changes how sessions are kept and planned, from the next request
// on: Catalog, Window, Policy, Policies, Settings, Recall and Refuse of the
// options. All else stays as New was told. What is under way goes
// on as it began. Options that make no sense are an error and change nothing.
func (a *shared) Configure(opts *Options) error {
	o := *a.live()
	if opts == nil {
		opts = &Options{}
	}
	o.Catalog, o.Window = opts.Catalog, opts.Window
	o.Policy, o.Policies, o.Settings = opts.Policy, opts.Policies, opts.Settings
	o.Recall, o.Refuse = opts.Recall, opts.Refuse
	o.defaults()
	if err := o.checkPolicies(); err != nil {
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
