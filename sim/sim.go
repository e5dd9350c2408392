package sim

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/promptcache"
)

// Options say what a Sim serves and how. The zero value of each field is
// useful.
type Options struct {
	// Models finds a model by the name in a request; what it does not find
	// is refused as the provider refuses an unknown model. If nil, the
	// built-in catalogue's Lookup. See Only.
	Models func(name string) (furl.Model, bool)
	// Window is the context window of every model, in tokens. If zero, the
	// model's own.
	Window int
	// Player answers. If nil, NewAgent(nil).
	Player Player
	// Faults happen to requests, the first that applies to each. A request
	// may ask for one of its own with the header X-Sim-Fault.
	Faults []Fault
	// NoAuth takes requests without credentials.
	NoAuth bool
	// AnyField takes fields that the provider does not know, as most servers
	// that are compatible to OpenAI do.
	AnyField bool
	// Pace is the time between two events of a stream.
	Pace time.Duration
	// Journal gets one line of JSON per request, an Entry. Nil: none.
	Journal io.Writer
	// Keep is how many requests Requests and their bodies remember; older
	// ones are forgotten, though not by the bill. If zero, 10,000.
	Keep int
	// KeepBodies keeps what was asked and answered in the entries, of the
	// newest requests up to 512 MiB.
	KeepBodies bool
	// Seed changes what is random: ids, and where streams are cut into
	// deltas. The same seed and the same requests in the same order give the
	// same answers.
	Seed uint64
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
	// Wait passes time, or less if the context ends. If nil, a timer.
	Wait func(context.Context, time.Duration) error
}

// Only serves one model under every name.
func Only(m furl.Model) func(string) (furl.Model, bool) {
	return func(string) (furl.Model, bool) { return m, true }
}

// Sim is the double: an http.Handler, safe for concurrent use. Make one with
// New.
type Sim struct {
	opts  Options
	turns *faultClock

	mu         sync.Mutex
	ending     map[chan struct{}]bool // answers whose end the client may have seen
	cache      promptcache.Cache
	sizes      sizes
	store      responseStore
	entries    []Entry // the newest Keep of them, and some more
	bodies     int     // bytes of bodies in them
	bare       int     // those before this one have none
	bill       Bill
	journalErr error
}

// New returns a provider without a model. Nil options are the defaults.
func New(opts *Options) *Sim {
	s := &Sim{turns: new(faultClock)}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	if o.Models == nil {
		o.Models = catalog.Default().Lookup
	}
	if o.Player == nil {
		o.Player = NewAgent(nil)
	}
	if o.Keep <= 0 {
		o.Keep = 10_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	s.sizes.memo.Size = 1 << 15
	return s
}

// ServeHTTP serves what the package comment lists.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
