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

// Options configure a Sim. The zero value of each field is useful.
type Options struct {
	// Models finds a model by the name in a request; a request for a model
	// that it does not find is refused as by the provider. If nil, the
	// built-in catalogue's Lookup. See Only.
	Models func(name string) (furl.Model, bool)
	// Window is the context window of every model, in tokens. If zero, that
	// of the model.
	Window int
	// Player answers. If nil, NewAgent(nil).
	Player Player
	// Faults apply to requests, the first that matches each. A request may
	// ask for a fault with the header X-Sim-Fault.
	Faults []Fault
	// NoAuth accepts requests without credentials.
	NoAuth bool
	// AnyField accepts fields that the provider does not know, as most
	// OpenAI-compatible servers do.
	AnyField bool
	// Pace is the time between two events of a stream.
	Pace time.Duration
	// Journal receives one line of JSON per request, an Entry. If nil, none
	// is written.
	Journal io.Writer
	// Keep is how many requests Requests returns; older ones are dropped, but
	// stay in the bill. If zero, 10,000.
	Keep int
	// KeepBodies keeps the bodies of requests and answers in the entries, of
	// the newest requests up to 512 MiB.
	KeepBodies bool
	// Seed changes what is random: ids, and where streams are cut into
	// deltas. The same seed and the same requests in the same order give the
	// same answers.
	Seed uint64
	// Now is the clock, called by several goroutines at once. If nil, time.Now.
	Now func() time.Time
	// Wait sleeps, or returns early when the context ends. If nil, a timer is
	// used.
	Wait func(context.Context, time.Duration) error
}

// Only serves one model under every name.
func Only(m furl.Model) func(string) (furl.Model, bool) {
	return func(string) (furl.Model, bool) { return m, true }
}

// Sim is the simulated provider: an http.Handler, safe for concurrent use.
// Create one with New.
type Sim struct {
	opts  Options
	turns *faultClock

	mu         sync.Mutex
	ending     map[chan struct{}]bool // answers whose end the client may have seen
	cache      promptcache.Cache
	sizes      sizes
	store      responseStore
	threads    threadStore
	entries    []Entry // the newest Keep of them, and some more
	bodies     int     // bytes of bodies in them
	bare       int     // entries before this index have no bodies
	recorded   int     // requests so far
	bill       Bill
	journalErr error
}

// New returns a simulated provider. Nil options mean defaults.
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

// ServeHTTP serves the APIs listed in the package comment.
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
