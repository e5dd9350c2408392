package sim

import "time"

// A client may take the last event of a stream for the end, and look at the
// bill before the handler has come to write it. So those who look wait for
// the answers that were about to end, but not for long: a client that does not
// read must not hold them up.

// maxSettle is how long is waited.
const maxSettle = time.Second

// finishing says that the client may see the end of the answer from now on.
func (c *call) finishing() {
	c.done = make(chan struct{})
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	if c.sim.ending == nil {
		c.sim.ending = make(map[chan struct{}]bool)
	}
	c.sim.ending[c.done] = true
}

// finished says that the request is in the journal.
func (c *call) finished() {
	if c.done == nil {
		return
	}
	c.sim.mu.Lock()
	delete(c.sim.ending, c.done)
	c.sim.mu.Unlock()
	close(c.done)
}

// settle waits for the answers that are about to end.
func (s *Sim) settle() {
	s.mu.Lock()
	var ending []chan struct{}
	for done := range s.ending {
		ending = append(ending, done)
	}
	s.mu.Unlock()
	if len(ending) == 0 {
		return
	}
	late := time.NewTimer(maxSettle)
	defer late.Stop()
	for _, done := range ending {
		select {
		case <-done:
		case <-late.C:
			return
		}
	}
}
