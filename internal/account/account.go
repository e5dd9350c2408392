// Package account computes the sizes and costs of a session's requests from its records:
// when a request is recorded, and again when the log is read.
package account

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// Why a request could not use the prompt cache of the previous request.
const (
	breakPlanned    = "planned"    // furl changed the prompt
	breakClient     = "client"     // the client changed its history
	breakModel      = "model"      // the request has another model
	breakPreamble   = "preamble"   // instructions or tools have changed
	breakExpired    = "expired"    // the cache has expired
	breakUnexpected = "unexpected" // none of these
)

// SinceLast sums up the records on the path after the previous exchange.
type SinceLast struct {
	Counted, Items int // tokens and items of the new messages
	Edited         bool
	Client         bool // the client made the first edit
	Own            float64
	OwnTokens      int
}

// Sent is what the account of a request follows from. All of it is in the log
// and in the descriptions of models, so that it is the same when the request is
// recorded and when it is computed again from the log (History).
//
// The cost without reductions follows from the reported usage and the estimated
// size of the hidden blocks. If furl did not change the prompt since the previous
// request, the hidden blocks would have been billed like the rest of the old
// prompt: as cache reads if there were any, else as cache writes or input. If it
// did, then without the change the old prompt would have been read from the cache,
// unless that had expired, and only the new messages written. If a ping kept the cache
// alive, or entries of one hour that furl asked for a part of it, everything would have
// been written. What such entries cost more to write is not spent without furl. In all
// cases the reply is assumed to be the same. An agent without furl does not send prompts
// above the window: see alternative.go.
//
// Where the provider ran several passes, the first one is the request as it was sent. The
// later ones on the conversation would have read the hidden blocks from the cache.
type Sent struct {
	Model    *furl.Model // with the prices and the lifetime of the request's cache entries
	Models   ModelLookup // of other passes
	Name     string      // the model's in requests
	Window   int         // the provider's limit; 0: unknown, or nothing is hidden
	Usage    furl.Usage
	Passes   furl.Passes
	Terms    furl.Terms
	Size     int // the estimated one
	Preamble furl.Digest
	At       time.Time
	Dry      bool
	// Scale and PerItem convert counted tokens into the provider's (furl.Budget.Of).
	Scale, PerItem float64
	// Hidden is the size of what furl hides, as counted; zero for a dry run.
	Hidden Counted
	// Last is the previous exchange on the path, when its time, between the
	// records since.
	Last    *furl.Exchange
	When    time.Time
	Between SinceLast
	// Pinged is the time of the newest ping, zero if unknown.
	Pinged time.Time
	// Hour says that furl asked for entries of one hour for instructions and tools.
	Hour bool
}

// keptAlive reports whether the cache would have expired since the previous request
// without a ping.
func (r *Sent) keptAlive(late bool) bool {
	return late && r.Pinged.After(r.When) && r.At.Sub(r.Pinged) <= r.Model.Caching.Lifetime
}

// Account returns the account, without repeated calls.
func (r *Sent) Account() price.Account {
	b := furl.Budget{Scale: r.Scale, PerItem: r.PerItem}
	u := r.Usage
	a := price.Account{Prompt: cmp.Or(u.Prompt(), r.Size), Own: r.Between.Own, OwnTokens: r.Between.OwnTokens}
	a.Hidden = max(0, b.Of(r.Hidden.Tokens, r.Hidden.Items))
	a.PromptWithout, a.PromptMost = WithoutSizes(a.Prompt, a.Hidden, r.Window)
	a.Over = r.Window > 0 && a.Prompt+a.Hidden > r.Window
	if u == (furl.Usage{}) && len(r.Passes) == 0 {
		return a
	}
	late := r.Last != nil && r.At.Sub(r.When) > r.Model.Caching.Lifetime
	kept := r.keptAlive(late)
	cached := wasCached(r.Last, r.Model)
	if cached && !WasDry(r.Last.Plan) && !r.Dry {
		a.Break = r.cacheBreak(late && !kept)
	}
	billed := price.Request{Model: r.Model, Models: r.Models, Usage: u, Passes: r.Passes, Terms: r.Terms, At: r.At}
	a.Cost, a.Priced = sum(&billed)
	a.Without, a.WithoutMost = a.Cost, a.Cost
	kept = kept || r.keptHour(late)
	if !a.Priced || a.Hidden == 0 && !(kept && cached) && !(r.Hour && u.CacheWrite1h > 0) {
		return a
	}
	still := cached && !late && r.Last.Model == r.Name && r.samePreamble()
	alt := alternative{Sent: r, billed: billed, passes: r.Passes.All(u), edited: r.Between.Edited || kept, still: still, fresh: b.Of(r.Between.Counted, r.Between.Items)}
	a.WithoutMost = alt.cost(a.PromptMost-a.Prompt, alt.edited, alt.fresh)
	a.Without = a.WithoutMost
	if a.PromptWithout != a.PromptMost {
		a.Without = alt.compactingCost(a.Prompt, a.Hidden)
	}
	return a
}

// sum returns what a request costs, 0 if a price is not known.
func sum(r *price.Request) (float64, bool) {
	c, priced := r.Cost()
	return c.Sum(), priced
}

// wasCached reports whether the provider has most likely cached the last
// prompt: its usage says so, or the model caches prompts automatically.
func wasCached(last *furl.Exchange, m *furl.Model) bool {
	if last == nil || m.Caching.Lifetime == 0 {
		return false
	}
	return UsedCache(last.Usage) || !m.Caching.Explicit && last.Usage.Prompt() >= m.Caching.MinPrefix
}

func UsedCache(u furl.Usage) bool { return u.CacheRead+u.CacheWrite+u.CacheWrite1h > 0 }

// usageWithout returns the estimated usage of a request without reductions: hidden
// tokens are added to the prompt, or removed if there are less than none. If furl edited the prompt, fresh is the size of
// the new messages, and held says that the cache had the rest.
func usageWithout(u furl.Usage, hidden int, edited, held bool, fresh int) furl.Usage {
	prompt := u.Prompt() + hidden
	out := furl.Usage{Output: u.Output, Reasoning: u.Reasoning}
	if !edited {
		out = u
		if hidden < 0 {
			takeFrom(&out, -hidden)
			return out
		}
		fresh = hidden
		if u.CacheRead > 0 {
			out.CacheRead += hidden
			return out
		}
	} else if fresh = min(fresh, prompt); held {
		out.CacheRead = prompt - fresh
	} else {
		fresh = prompt
	}
	switch {
	case u.CacheWrite1h > u.CacheWrite:
		out.CacheWrite1h += fresh
	case u.CacheWrite > 0:
		out.CacheWrite += fresh
	default:
		out.Input += fresh
	}
	return out
}

// Record adds the next record of the path. last is the latest exchange, 0 if there
// is none.
func (b *SinceLast) Record(r furl.Record, last furl.Seq) {
	edit := func(client bool) {
		if !b.Edited {
			b.Edited, b.Client = true, client
		}
	}
	switch body := r.Body.(type) {
	case *furl.Message:
		b.Counted += body.Tokens()
		b.Items += itemsOf(body)
	case *furl.Reduction:
		b.Own += body.Cost.Own
		if body.Summary != nil {
			b.OwnTokens += body.Summary.Usage.Prompt() + body.Summary.Usage.Output
		}
		if coversUpTo(body, last) {
			edit(body.Stage == furl.StageClient || r.By == furl.Import || r.By == furl.Upstream)
		}
	case *furl.Takeover:
		var taken *furl.Reduction // the last one that counts
		for _, k := range body.Taken() {
			if red, ok := k.(*furl.Reduction); ok && coversUpTo(red, last) {
				taken = red
			}
		}
		if taken != nil {
			edit(taken.Stage == furl.StageClient)
		}
	case *furl.Restoration:
		if body.Of != 0 || body.Open {
			edit(false)
		}
	}
}

// coversUpTo reports whether a reduction covers messages up to a record. Later
// messages were in no prompt yet.
func coversUpTo(red *furl.Reduction, upto furl.Seq) bool {
	for i := range red.Items {
		for _, sp := range red.Items[i].Spans {
			if sp.First.Msg <= upto {
				return true
			}
		}
	}
	return false
}

func itemsOf(m *furl.Message) (n int) {
	for i := range m.Blocks {
		if k := m.Blocks[i].Kind; k == furl.KindCall || k == furl.KindResult {
			n++
		}
	}
	return n
}

// cacheBreak returns why the cache was not used, "" if it was. It was not if furl
// changed the prompt, or if less than half of the previous prompt was read from
// it.
func (r *Sent) cacheBreak(late bool) string {
	switch {
	case r.Between.Edited && !r.Between.Client && !late:
		return breakPlanned
	case !UsedCache(r.Last.Usage) || 2*r.Passes.First(r.Usage).CacheRead >= r.Last.Usage.Prompt():
		return ""
	case r.Last.Model != r.Name:
		return breakModel
	case late:
		return breakExpired
	case r.Between.Client:
		return breakClient
	case !r.samePreamble():
		return breakPreamble
	}
	return breakUnexpected
}

// samePreamble reports whether instructions and tools are unchanged or unknown.
func (r *Sent) samePreamble() bool {
	return r.Last.Preamble.IsZero() || r.Preamble.IsZero() || r.Last.Preamble == r.Preamble
}

// Counted is a size in counted tokens and items (furl.Budget.Of), without
// thinking: providers drop some of it themselves.
type Counted struct{ Tokens, Items int }

func (p *Counted) Add(m *furl.Message) {
	for i := range m.Blocks {
		switch m.Blocks[i].Kind {
		case furl.KindThinking:
			continue
		case furl.KindCall, furl.KindResult:
			p.Items++
		}
		p.Tokens += m.Blocks[i].Tokens
	}
}

// RecordedPart returns the size of the messages of a path as recorded.
func RecordedPart(st *furl.State) (p Counted) {
	for i := range st.Len() {
		_, m := st.Message(i)
		p.Add(m)
	}
	return p
}

// HiddenPart returns by how much a view is smaller than the client's messages.
// recorded is the size of the path's messages as recorded. What the client has
// removed itself does not count.
func HiddenPart(st *furl.State, v *furl.View, recorded Counted) Counted {
	hidden := recorded
	left := leftOut(st)
	for p, tokens := range clientTokens(st) {
		if i, ok := st.Find(p.Msg); ok && !left.has(i) {
			if _, m := st.Message(i); p.Block < len(m.Blocks) && m.Blocks[p.Block].Kind != furl.KindThinking {
				hidden.Tokens += tokens - m.Blocks[p.Block].Tokens
			}
		}
	}
	for _, r := range left {
		for i := r.from; i < r.to; i++ {
			seq, m := st.Message(i)
			if red, ok := st.Reduction(st.ShownBy(furl.Pos{Msg: seq})); !ok || !red.External() {
				continue // the client sends it again
			}
			var out Counted
			out.Add(m)
			hidden.Tokens, hidden.Items = hidden.Tokens-out.Tokens, hidden.Items-out.Items
		}
	}
	for i := range v.Messages {
		if sh := &v.Messages[i]; sh.Index < 0 {
			if red, ok := st.Reduction(sh.By); ok && red.External() {
				continue // in place of others, by the client or the provider
			}
		}
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; sb.Block.Kind != furl.KindThinking {
				hidden.Tokens -= sb.Tokens
			}
		}
	}
	hidden.Items -= v.Items
	return hidden
}

// messageRanges are ranges of messages of a path, in order.
type messageRanges []struct{ from, to int }

func (l messageRanges) has(i int) bool {
	for _, r := range l {
		if r.from <= i && i < r.to {
			return true
		}
	}
	return false
}

// leftOut returns the messages that the client or the provider has left out or replaced at
// some time.
func leftOut(st *furl.State) (list messageRanges) {
	for red := range st.Reductions() {
		if red.Undone || !red.External() {
			continue
		}
		for i := range red.Items {
			if _, ok := red.Items[i].Show.(furl.Mark); !ok {
				continue
			}
			for _, sp := range red.Items[i].Spans {
				from, ok1 := st.Find(sp.First.Msg)
				last, ok2 := st.Find(sp.Last.Msg)
				if ok1 && ok2 {
					list = append(list, struct{ from, to int }{from, last + 1})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b struct{ from, to int }) int { return cmp.Compare(a.from, b.from) })
	n := 0
	for _, r := range list {
		if n > 0 && r.from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, r.to)
			continue
		}
		list[n] = r
		n++
	}
	return list[:n]
}

// clientTokens returns the sizes of the blocks that the client has changed, as the
// client sends them.
func clientTokens(st *furl.State) map[furl.Pos]int {
	var sizes map[furl.Pos]int
	for red := range st.Reductions() {
		if red.Undone || red.Stage != furl.StageClient {
			continue
		}
		for i := range red.Items {
			in, ok := red.Items[i].Show.(furl.In)
			for _, sp := range red.Items[i].Spans {
				if !ok || sp.First != sp.Last {
					continue // clients change single results
				}
				if sizes == nil {
					sizes = make(map[furl.Pos]int)
				}
				sizes[sp.First] = in.Tokens
			}
		}
	}
	return sizes
}
