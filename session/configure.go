package session

import "fmt"

// Configure changes Catalog, Window, Policy, Policies, Settings, AskFirst, Commands,
// Recall and Refuse of the options, from the next request on. The other options stay as given to
// New. Requests in flight are not affected. Invalid options are an error and change
// nothing.
func (a *shared) Configure(opts *Options) error {
	o := *a.live()
	if opts == nil {
		opts = &Options{}
	}
	o.Catalog, o.Window = opts.Catalog, opts.Window
	o.Policy, o.Policies, o.Settings = opts.Policy, opts.Policies, opts.Settings
	o.AskFirst, o.Commands = opts.AskFirst, opts.Commands
	o.Recall, o.Refuse = opts.Recall, opts.Refuse
	o.defaults()
	if err := o.checkPolicies(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	a.current.Store(&o)
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.models) // they are from the old catalog
	clear(a.preambles)
	return nil
}

// live returns the current options.
func (a *shared) live() *Options { return a.current.Load() }
