package open

import "github.com/furlhq/furl"

// Flight is a request of a client from its preparation until its reply is recorded. The
// session stays in memory until then. Other requests of the session read it: the session's
// lock guards all of it.
type Flight struct {
	// First and Last are the heads (policy.Fit.Head) of the first and of the latest request
	// that was committed; 0: none.
	First, Last furl.Seq
	// EndChain is the chain of digests at the end of the request's messages.
	EndChain furl.Digest
	// Compacts is set for a request for a compaction.
	Compacts bool
	// Done is closed when it ends.
	Done chan struct{}
}

// Exchanges is what this process knows of the exchanges of a session.
type Exchanges struct {
	// Flights are the requests in flight.
	Flights map[*Flight]struct{}
	// Opened is set if this process has stored the session's first record.
	Opened bool
	// First and Last are those of the exchange that this process has committed last.
	First, Last furl.Seq
}

// Exchanges returns what this process knows of the session's exchanges.
func (c *Change) Exchanges() *Exchanges { return &c.s.exchanges }

// Start adds a request to those in flight.
func (c *Change) Start(compacts bool) *Flight {
	f := &Flight{Compacts: compacts, Done: make(chan struct{})}
	e := &c.s.exchanges
	if e.Flights == nil {
		e.Flights = make(map[*Flight]struct{})
	}
	e.Flights[f] = struct{}{}
	c.s.holders.Add(1)
	return f
}

// End ends a request in flight. It reports whether it was in flight.
func (c *Change) End(f *Flight) bool {
	e := &c.s.exchanges
	if _, ok := e.Flights[f]; !ok {
		return false
	}
	delete(e.Flights, f)
	close(f.Done)
	c.s.holders.Add(-1)
	return true
}
