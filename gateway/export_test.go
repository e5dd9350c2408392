package gateway

// WaitSummaries waits for the summaries that are being written.
func (g *Gateway) WaitSummaries() { g.summaries.work.Wait() }

// Summarizing counts the summaries that are being written.
func (g *Gateway) Summarizing() int {
	g.summaries.mu.Lock()
	defer g.summaries.mu.Unlock()
	return len(g.summaries.cancels)
}

// BodyMemory returns the memory that is acquired for bodies of requests, in bytes.
func (g *Gateway) BodyMemory() int64 { return g.bodyMemory.Used() }

// BodyMemoryLimit returns how much may be acquired, and HoldBodyMemory acquires some.
func (g *Gateway) BodyMemoryLimit() int64 { return g.bodyMemory.Limit() }

func (g *Gateway) HoldBodyMemory(n int64) (release func()) {
	if !g.bodyMemory.TryAcquire(n) {
		panic("no memory")
	}
	return func() { g.bodyMemory.Release(n) }
}

// Held returns the number of requests that are held to keep prompt caches alive, and
// their size.
func (g *Gateway) Held() (requests, bytes int) {
	g.keeper.mu.Lock()
	defer g.keeper.mu.Unlock()
	return len(g.keeper.paused), g.keeper.bytes
}
