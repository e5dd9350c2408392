package sim

import "time"

// A client may treat the last event of a stream as the end, and read the bill
// before the handler has written it. So readers wait for answers that are
// about to end, but not long: a client that does not read must not block
// them.

// maxSettle is the maximum wait.
const maxSettle = time.Second

// finishing reports that the client may now see the end of the answer.
func (c *call) finishing() {
	c.done = make(chan struct{})
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	if c.sim.ending == nil {
		c.sim.ending = make(map[chan struct{}]bool)
	}
	c.sim.ending[c.done] = true
}

// finished reports that the request is in the journal.
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
