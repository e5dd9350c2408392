package replay

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// Candidate is a policy to try. New makes it for one session, with the summarizer
// that replaces a model.
type Candidate struct {
	Name string
	New  func(policy.Summarizer) (furl.Policy, error)

	pings     int                // at most in a pause; see Options.KeepAlive
	hourCache protocol.HourCache // see Options.HourCache
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
		out = append(out, Candidate{Name: name, New: make})
	}
	return out, nil
}

// Fixed makes a candidate of a policy that needs no summarizer.
func Fixed(p furl.Policy) Candidate {
	return Candidate{Name: p.Name(), New: func(policy.Summarizer) (furl.Policy, error) { return p, nil }}
}

// Options are the settings of a replay. The zero value tries all presets with
// each model's own context window and the built-in catalogue.
type Options struct {
	// Candidates are the policies to try. If empty, all presets.
	Candidates []Candidate
	// Windows are the context windows to try, in tokens; 0 is the model's own:
	// ModelWindow's, else the recorded one (transcript.Session.Windows), else
	// the catalogue's, else the one that it assumes (catalog.Catalog.Assume). If empty, {0}.
	Windows []int
	// ModelWindow, if not nil, returns the context window in tokens that the
	// user has set for a model of the catalogue, 0 for none.
	ModelWindow func(model string) int
	// KeepAlive is the number of pings that may keep a prompt cache alive in a
	// pause of a session. If it is not 0, each candidate is also tried with pings,
	// under its name with KeepAliveSuffix.
	KeepAlive int
	// HourCache says when requests ask for cache entries of one hour for instructions
	// and tools, as in the gateway. With protocol.HourAlways, each candidate is also
	// tried with them, under its name with HourCacheSuffix.
	HourCache protocol.HourCache
	// Model replaces the recorded models, for prices, window and rules.
	Model string
	// Prices replace those of the catalogue if Input is not 0.
	Prices furl.Prices
	// CacheRead and CacheWrite set the cache prices to this multiple of the
	// input price. If nil, the prices of the catalogue apply. A model that is
	// not in the catalogue caches prompts only if a price for cache reads is
	// set, here or in Prices.
	CacheRead, CacheWrite *float64
	// CacheLifetime replaces the lifetime of cache entries that the recorded client
	// requested. Entries of an hour have their own write price; CacheWrite, if set,
	// is then that price. If zero, the lifetime that the reported usage shows.
	CacheLifetime time.Duration
	// If nil, the built-in catalogue.
	Catalog *catalog.Catalog
	// Recall makes policies plan for models that can call recall tools, so that
	// placeholders have handles. Policies that need recall always do.
	Recall bool
	// Workers is the number of sessions that run concurrently. If zero, one
	// per CPU.
	Workers int
	// Progress, if set, is called after each run, from one goroutine at a
	// time.
	Progress func(Progress)

	// Timing fills in Report.Timing.
	Timing bool

	// sent, if set, gets each rebuilt request. Runs call it concurrently.
	sent func(*run, *furl.Plan)
	// Variations of the simulated cache, to find out how much depends on them:
	// without the breakpoint where a request stops sharing a prefix with the
	// previous one, and with reads that renew only the entry that is read.
	noMark, renewOne bool

	prompts *sync.Map // of answered, by recording; nil: not kept
	watch   *stopwatch
}

// Progress is the progress of a replay.
type Progress struct {
	File string // the one being replayed
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
	switch o.HourCache {
	case protocol.HourAlways:
		o.Candidates = withHourCache(o.Candidates)
	case protocol.HourNever:
		o.Candidates = slices.Clone(o.Candidates)
		for i := range o.Candidates {
			o.Candidates[i].hourCache = protocol.HourNever
		}
	}
	if o.KeepAlive > 0 {
		o.Candidates = withKeepAlive(o.Candidates, o.KeepAlive)
	}
	if len(o.Windows) == 0 {
		o.Windows = []int{0}
	}
	if o.Catalog == nil {
		o.Catalog = catalog.Default()
	}
	o.prompts = new(sync.Map)
	if o.Timing {
		o.watch = &stopwatch{policies: make(map[string]time.Duration)}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return &o, nil
}

// model looks up a model of a recording and applies the overrides. It reports
// whether the catalogue has it.
func (o *Options) model(recorded string, rec *transcript.Session) (furl.Model, bool) {
	name := recorded
	if o.Model != "" {
		name = o.Model
	}
	m, known := o.Catalog.Lookup(name)
	if !known {
		m = o.Catalog.Describe(name, rec.Wire)
		if o.CacheRead != nil || o.Prices.CacheRead > 0 {
			m.Caching = cmp.Or(m.Caching, catalog.CommonCaching(rec.Wire))
		}
	}
	m.Window = o.windowOf(&m, recorded, rec)
	hour := hourShare(&m)
	if price.Known(o.Prices) {
		m.Prices = price.Complete(o.Prices)
		m.LongAbove, m.TimedPrices = 0, nil
	}
	price.Each(&m, func(p *furl.Prices) {
		if o.CacheRead != nil {
			p.CacheRead = p.Input * *o.CacheRead
		}
		if o.CacheWrite != nil {
			p.CacheWrite = p.Input * *o.CacheWrite
			p.CacheWrite1h = p.CacheWrite * hour
			if o.CacheLifetime >= time.Hour {
				p.CacheWrite1h = p.CacheWrite
			}
		}
	})
	return m, known
}

// hourShare returns the price of cache entries of one hour as a multiple of that of
// others: the catalogue's, else Anthropic's.
func hourShare(m *furl.Model) float64 {
	if m.Prices.CacheWrite > 0 && m.Prices.CacheWrite1h > 0 {
		return m.Prices.CacheWrite1h / m.Prices.CacheWrite
	}
	return 2 / 1.25
}

// answered returns the largest prompts that a recording has answers to. They prove
// windows at least as large.
func (o *Options) answered(rec *transcript.Session) map[string]int {
	if o.prompts == nil {
		return rec.Answered()
	}
	prompts, ok := o.prompts.Load(rec)
	if !ok {
		prompts, _ = o.prompts.LoadOrStore(rec, rec.Answered())
	}
	return prompts.(map[string]int)
}

// forget drops what is kept about the sessions of a recording, and with it their logs.
func (o *Options) forget(rec *transcript.Recording) {
	for _, s := range rec.Sessions {
		o.prompts.Delete(s)
	}
}

// windowOf returns the context window of a model of a recording. What the user has set
// stays.
func (o *Options) windowOf(m *furl.Model, recorded string, rec *transcript.Session) int {
	if o.ModelWindow != nil {
		if n := o.ModelWindow(m.ID); n > 0 {
			m.WindowAssumed = false
			return n
		}
	}
	window := m.Window
	if n := rec.Windows[recorded]; n > 0 && o.Model == "" {
		m.WindowAssumed = false
		window = n
	}
	if window == 0 || o.Model != "" {
		return window
	}
	return max(window, o.answered(rec)[recorded])
}

// counter returns the counter that matches the provider of a session's model,
// including media.
func (o *Options) counter(rec *transcript.Session) furl.Counter {
	m, _ := o.model(rec.Model, rec)
	return token.For(&m)
}
