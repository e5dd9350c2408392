package membudget

import (
	"os"
	"runtime/debug"
)

// Budgets limit the memory of furl: those of requests, of sessions in memory and of a
// recording's records. The Go runtime lets the heap grow to twice the size in use.
// Above these limits it collects garbage sooner.
const (
	GatewayMemory = 1200 << 20
	CommandMemory = 400 << 20
	// SessionMemory is session.Options.MaxMemory of furl mcp.
	SessionMemory = 256 << 20
)

// SoftLimit sets the soft memory limit of the runtime, in bytes, unless GOMEMLIMIT is
// set.
func SoftLimit(n int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(n)
	}
}
