package replay

import (
	"runtime"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// Candidate is a policy to try. New makes it for one session, so that policies
// that need a model's summary get one to ask.
type Candidate struct {
	Name string
	New  func(policy.Summarizer) (furl.Policy, error)
}

// Candidates returns the named policies of a set as candidates, all of them if
// none is named. If the set is nil, its policies are the presets. An unknown name
// is an error that lists the names.
func Candidates(set *policy.Set, names ...string) ([]Candidate, error) {
	if set == nil {
		set = policy.NewSet()
	}
	if len(names) == 0 {
		names = set.Names()
	}
	var out []Candidate
	for _, name := range names {
		make := func(s policy.Summarizer) (furl.Policy, error) {
			return set.Policy(name, policy.Settings{Summarizer: s})
		}
		if _, err := make(nil); err != nil {
			return nil, err
		}
		out = append(out, Candidate{name, make})
	}
	return out, nil
}

// Fixed makes a candidate of a policy that needs no summaries, such as one of
// your own.
func Fixed(p furl.Policy) Candidate {
	return Candidate{p.Name(), func(policy.Summarizer) (furl.Policy, error) { return p, nil }}
}

// Options say what to replay with. The zero value tries all presets at each
// model's own window, with the built-in catalogue.
type Options struct {
	Candidates []Candidate
	// Windows to try, in tokens; 0 is the model's own. If empty, {0}.
	Windows []int
	// Model replaces the recorded models, for prices, window and rules.
	Model string
	// Prices replace the catalogue's, where Input is not 0.
	Prices furl.Prices
	// CacheRead and CacheWrite replace the cache prices by this multiple of
	// the input price. If nil, the catalogue's stay. A model that is not in
	// the catalogue is taken to cache prompts, as most of its wire format do,
	// if a price of reading is given here or in Prices.
	CacheRead, CacheWrite *float64
	// If nil, the built-in catalogue.
	Catalog *catalog.Catalog
	// Workers is how many sessions run at once. If zero, one per CPU.
	Workers int
	// Progress, if set, is called as work gets done, from one goroutine at
	// a time.
	Progress func(Progress)

	// sent, if set, sees each request that is about to be sent. Runs call it
	// concurrently.
	sent func(*run, *furl.Plan)
}

// Progress says how far a replay is.
type Progress struct {
	File string // being replayed
	// Done of Total runs of File: sessions × policies × windows.
	Done, Total int
	// Files finished so far.
	Files int
}

// complete fills in the defaults.
func (o Options) complete() (*Options, error) {
	if len(o.Candidates) == 0 {
		c, err := Candidates(nil)
		if err != nil {
			return nil, err
		}
		o.Candidates = c
	}
	if len(o.Windows) == 0 {
		o.Windows = []int{0}
	}
	if o.Catalog == nil {
		o.Catalog = catalog.Default()
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return &o, nil
}

// model finds what is known of a recorded model and applies the overrides.
func (o *Options) model(recorded string, wire furl.Format) (furl.Model, bool) {
	name := recorded
	if o.Model != "" {
		name = o.Model
	}
	m, known := o.Catalog.Lookup(name)
	if !known {
		m = catalog.Unknown(name, wire)
		if o.CacheRead != nil || o.Prices.CacheRead > 0 {
			m.Caching = catalog.CommonCaching(wire)
		}
	}
	if price.Known(o.Prices) {
		m.Prices = price.Complete(o.Prices)
		m.LongAbove = 0
	}
	if o.CacheRead != nil {
		m.Prices.CacheRead = m.Prices.Input * *o.CacheRead
		m.LongPrices.CacheRead = m.LongPrices.Input * *o.CacheRead
	}
	if o.CacheWrite != nil {
		m.Prices.CacheWrite = m.Prices.Input * *o.CacheWrite
		m.LongPrices.CacheWrite = m.LongPrices.Input * *o.CacheWrite
	}
	return m, known
}

// counter counts tokens as the provider of a session's model would, media
// among them.
func (o *Options) counter(rec *transcript.Session) furl.Counter {
	m, _ := o.model(rec.Model, rec.Wire)
	return token.For(&m)
}
