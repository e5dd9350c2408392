package cli

import (
	"os"
	"runtime/debug"
)

// What furl takes is bounded by budgets: of the gateway's requests, of the
// sessions in memory, of a recording's records. The runtime would let the heap
// grow to twice of what is in use; above these limits it collects garbage
// sooner. They are not bounds by themselves.
const (
	gatewayMemory = 1200 << 20
	commandMemory = 400 << 20
	// sessionMemory is session.Options.MaxMemory of commands.
	sessionMemory = 256 << 20
)

// softLimit sets the memory that the runtime stays below if it can, in bytes,
// unless the user has set it.
func softLimit(n int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(n)
	}
}
