// Package billed lists what providers have billed: the requests of recordings and of
// stored sessions, each once, with their cost. Everything that says what recorded usage
// has cost adds up these entries, or prices them with price.Request as this package does.
package billed

import (
	"iter"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// Kind says what a request was for.
type Kind string

// The kinds of requests. Those of sub-agents have them too: an entry of a sub-agent has a
// Parent.
const (
	Reply      Kind = "reply"
	Compaction Kind = "compaction" // by the agent, in a request of its own that it recorded as such
	Side       Kind = "side"       // by the agent, beside the conversation
	Summary    Kind = "summary"    // by furl
	KeepAlive  Kind = "keep-alive" // keeps a prompt cache alive
)

// Entry is a request that a provider has billed.
type Entry struct {
	Time time.Time `json:"time"` // when it was made, zero if unknown
	// Session is the id of the session, of stored ones the store's. Parent is that of the session
	// that started it as a sub-agent, "" if it is none, as the agent calls it.
	Session string `json:"session"`
	Parent  string `json:"parent,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Project string `json:"project,omitempty"` // the folder it worked in
	Model   string `json:"model,omitempty"`   // by its name in the request
	Kind    Kind   `json:"kind"`
	// Response is the provider's id of the response, "" if it has none.
	Response string `json:"response,omitempty"`
	// Seq is the record of the request in the session's log, 0 if it has none.
	Seq furl.Seq `json:"seq,omitempty"`
	// Usage is that of all passes together, zero if none was recorded.
	Usage furl.Usage `json:"usage"`
	Terms furl.Terms `json:"terms"`
	// Cost is in US dollars. It is 0 unless Priced: the usage is recorded and the prices of all
	// models of the request are known. Split is the same by what it is for; it is zero for
	// what furl itself spent.
	Cost   float64    `json:"cost"`
	Split  price.Cost `json:"split"`
	Priced bool       `json:"priced"`
	// Unpriced are the terms that have no price, such as `service tier "priority"`. They
	// are left out of Cost.
	Unpriced []string `json:"unpriced,omitempty"`
	// Elsewhere says that another session has the same request and counts it: this one is
	// a fork, a resumed session or a copy. Sums leave such entries out.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Session is what a session was billed. Its fields are as in its entries; Title is that of the session, "" if it has none.
type Session struct {
	ID, Parent, Title, Agent, Project string

	Entries []Entry
}

// Recorded reports whether the usage of the request is known.
func (e *Entry) Recorded() bool { return e.Usage != (furl.Usage{}) }

// Models describes a model by its name in requests.
type Models func(name string) furl.Model

// OfRecording yields the requests of the sessions of a recording in recorded order, those of
// all branches. models describes the models of a session.
//
// A compaction is an entry of its own only if the agent says which model wrote it. Its
// usage is not recorded by all agents; see docs/use/formats.md.
func OfRecording(rec *transcript.Recording, models func(*transcript.Session) Models) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, s := range rec.Sessions {
			for e := range OfSession(rec, s, models(s)) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// OfSession yields the requests of one session of a recording, as OfRecording does.
func OfSession(rec *transcript.Recording, s *transcript.Session, models Models) iter.Seq[Entry] {
	from := Entry{Session: s.ID, Parent: s.Parent, Agent: rec.Agent, Project: s.Project}
	return entries(s.Log.Records(0), from, models, CountedElsewhere(s.Repeated))
}

// CountedElsewhere returns a function that reports which entries of a session of a recording another session
// counts, by their kind and Seq, from its Repeated.
func CountedElsewhere(repeated map[furl.Seq]bool) func(Kind, furl.Seq) bool {
	last := furl.Seq(0)
	for seq := range repeated {
		last = max(last, seq)
	}
	return func(k Kind, seq furl.Seq) bool {
		if k == Compaction || k == Summary { // they have no reply that could be compared
			return seq < last
		}
		return repeated[seq]
	}
}

// OfStored yields the requests of a stored session, those of all branches, from its
// records and its metadata. Pings that kept its prompt cache alive are known as one sum
// a day.
func OfStored(key furl.SessionID, meta *storage.Meta, records []furl.Record, models Models) iter.Seq[Entry] {
	from := Entry{Session: string(key), Parent: meta.Parent, Agent: meta.Client, Project: meta.Project}
	return func(yield func(Entry) bool) {
		copied := func(_ Kind, seq furl.Seq) bool { return seq <= meta.ForkAt }
		for e := range entries(records, from, models, copied) {
			if !yield(e) {
				return
			}
		}
		if meta.Ledger == nil {
			return
		}
		for _, d := range meta.Ledger.Days {
			if d.Pings == 0 {
				continue
			}
			e := from
			e.Time, _ = time.Parse(time.DateOnly, d.Day)
			e.Kind, e.Model, e.Cost, e.Priced = KeepAlive, d.Model, d.PingCost, d.PingCost > 0
			e.Usage.CacheRead = d.PingTokens
			if !yield(e) {
				return
			}
		}
	}
}

// entries yields the requests among the records of a log.
func entries(records []furl.Record, from Entry, models Models, elsewhere func(Kind, furl.Seq) bool) iter.Seq[Entry] {
	answered := make(map[furl.Seq]bool, len(records)/2) // the parents of messages
	for i := range records {
		if m, ok := records[i].Body.(*furl.Message); ok && m.Role == furl.RoleAssistant {
			answered[records[i].Parent] = true
		}
	}
	return func(yield func(Entry) bool) {
		for i := range records {
			r := &records[i]
			e := from
			e.Time, e.Seq = r.At, r.Seq
			switch b := r.Body.(type) {
			case *furl.Exchange:
				e.Kind, e.Response = kindOf(r, b, answered[r.Seq]), b.ResponseID
				e.price(b.Model, b.Usage, b.Passes, b.Terms, models)
			case *furl.Reduction:
				if b.Summary == nil || b.Summary.Model == "" {
					continue
				}
				e.Kind = Compaction
				e.price(b.Summary.Model, b.Summary.Usage, nil, furl.Terms{}, models)
				if r.By == furl.Furl {
					e.Kind = Summary
					if b.Cost.Own > 0 { // as it was added up
						e.Cost, e.Split, e.Priced = b.Cost.Own, price.Cost{}, true
					}
				}
			default:
				continue
			}
			e.Elsewhere = elsewhere(e.Kind, r.Seq)
			if !yield(e) {
				return
			}
		}
	}
}

// cacheWarm is what pi calls a request that keeps the prompt cache.
const cacheWarm = "cache_warm"

func kindOf(r *furl.Record, ex *furl.Exchange, answered bool) Kind {
	switch {
	case answered || r.By != furl.Import:
		return Reply
	case ex.Stop == cacheWarm:
		return KeepAlive
	}
	return Side
}

// price sets what the entry costs.
func (e *Entry) price(model string, u furl.Usage, passes furl.Passes, terms furl.Terms, models Models) {
	m := models(model)
	r := &price.Request{Model: &m, Models: models, Usage: u, Passes: passes, Terms: terms, At: e.Time}
	e.Model, e.Usage, e.Terms = model, passes.Sum(u), terms
	if !e.Recorded() {
		return
	}
	e.Unpriced = r.Unpriced()
	if e.Split, e.Priced = r.Cost(); e.Priced {
		e.Cost = e.Split.Sum()
	}
}

// Bill is the sum of entries.
type Bill struct {
	// Cost is in US dollars, Subagents its part that sub-agents have spent.
	Cost, Subagents float64
	// Requests counts the entries with a usage, Unpriced those of them whose cost is not
	// known, and Unrecorded the requests without a usage.
	Requests, Unpriced, Unrecorded int
	// Output is the recorded size of the replies in tokens.
	Output int
	// Terms are the terms without a price, each once.
	Terms []string
}

// Add adds an entry, unless another session counts it.
func (b *Bill) Add(e *Entry) {
	switch {
	case e.Elsewhere:
		return
	case !e.Recorded():
		b.Unrecorded++
		return
	case !e.Priced:
		b.Unpriced++
	}
	b.Requests++
	b.Cost += e.Cost
	if e.Parent != "" {
		b.Subagents += e.Cost
	}
	b.Output += e.Usage.Output
	for _, t := range e.Unpriced {
		if !slices.Contains(b.Terms, t) {
			b.Terms = append(b.Terms, t)
		}
	}
}

// Sum adds up entries.
func Sum(entries iter.Seq[Entry]) Bill {
	var b Bill
	for e := range entries {
		b.Add(&e)
	}
	return b
}
