package gateway

// WaitSummaries waits for the summaries that are being written.
func (g *Gateway) WaitSummaries() { g.summaries.work.Wait() }

// Summarizing counts the summaries that are being written.
func (g *Gateway) Summarizing() int {
	g.summaries.mu.Lock()
	defer g.summaries.mu.Unlock()
	return len(g.summaries.cancels)
}
