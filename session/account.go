package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// Account is the cost of a request, and its estimated cost without reductions.
// Costs are in US dollars.
type Account struct {
	// Priced reports whether the prices of all models of the request are known.
	// Otherwise all costs are 0.
	Priced bool
	// Cost is the cost of the reported usage, of all passes of the request.
	Cost float64
	// Without is the estimated cost without reductions; see account. It equals
	// Cost if nothing is hidden.
	Without float64
	// Prompt is the reported size of the prompt in tokens, the estimated one if
	// the provider has reported none. PromptWithout is the size without
	// reductions.
	Prompt, PromptWithout int
	// Over reports whether the prompt would have exceeded the model's context
	// window without reductions. Without is then the cost if the provider had
	// accepted it.
	Over bool
	// Own is the cost of the summaries that were recorded since the previous
	// request, OwnTokens the tokens of their requests and replies.
	Own       float64
	OwnTokens int
	// Hidden is by how much the prompt is smaller than the client's, in the
	// provider's tokens and without thinking.
	Hidden int
	// Break is why the prompt cache of the previous request was not used:
	// planned, client, model, preamble, expired or unexpected; "" if it was.
	Break string
	// Refetched is the number of calls in the reply that repeat an earlier call,
	// with the same name and arguments, whose results are all hidden.
	Refetched int
}

// Why a request could not use the prompt cache of the previous request.
const (
	breakPlanned    = "planned"    // furl changed the prompt
	breakClient     = "client"     // the client changed its history
	breakModel      = "model"      // the request has another model
	breakPreamble   = "preamble"   // instructions or tools have changed
	breakExpired    = "expired"    // the cache has expired
	breakUnexpected = "unexpected" // none of these
)

// sinceLast sums up the records on the path after the previous exchange.
type sinceLast struct {
	counted, items int // tokens and items of the new messages
	edited         bool
	client         bool // the client made the first edit
	own            float64
	ownTokens      int
}

// accounted is what the account of a request follows from. All of it is in the log
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
// cases the reply is assumed to be the same. A prompt above the window is priced as if the
// provider had accepted it.
//
// Where the provider ran several passes, the first one is the request as it was sent. The
// later ones on the conversation would have read the hidden blocks from the cache.
type accounted struct {
	model    *furl.Model // with the prices and the lifetime of the request's cache entries
	models   modelLookup // of other passes
	name     string      // the model's in requests
	window   int         // the provider's limit; 0: unknown, or nothing is hidden
	usage    furl.Usage
	passes   furl.Passes
	size     int // the estimated one
	preamble furl.Digest
	at       time.Time
	dry      bool
	// scale and perItem convert counted tokens into the provider's (furl.Budget.Of).
	scale, perItem float64
	// hidden is the size of what furl hides, as counted; zero for a dry run.
	hidden countedPart
	// last is the previous exchange on the path, when its time, between the
	// records since.
	last    *furl.Exchange
	when    time.Time
	between sinceLast
	// pinged is the time of the newest ping, zero if unknown.
	pinged time.Time
	// hour says that furl asked for entries of one hour for instructions and tools.
	hour bool
}

// keptAlive reports whether the cache would have expired since the previous request
// without a ping.
func (r *accounted) keptAlive(late bool) bool {
	return late && r.pinged.After(r.when) && r.at.Sub(r.pinged) <= r.model.Caching.Lifetime
}

// account returns the account, without repeated calls.
func (r *accounted) account() Account {
	b := furl.Budget{Scale: r.scale, PerItem: r.perItem}
	u := r.usage
	a := Account{Prompt: cmp.Or(u.Prompt(), r.size), Own: r.between.own, OwnTokens: r.between.ownTokens}
	a.Hidden = max(0, b.Of(r.hidden.tokens, r.hidden.items))
	a.PromptWithout = a.Prompt + a.Hidden
	a.Over = r.window > 0 && a.PromptWithout > r.window
	if u == (furl.Usage{}) && len(r.passes) == 0 {
		return a
	}
	late := r.last != nil && r.at.Sub(r.when) > r.model.Caching.Lifetime
	kept := r.keptAlive(late)
	cached := wasCached(r.last, r.model)
	if cached && !wasDry(r.last.Plan) && !r.dry {
		a.Break = r.cacheBreak(late && !kept)
	}
	passes := r.passes.All(u)
	if a.Priced = r.pricesKnown(passes); a.Priced {
		a.Cost = price.OfPasses(r.model, passes, r.models, r.at)
		a.Without = a.Cost
	}
	kept = kept || r.keptHour(late)
	if !a.Priced || a.Hidden == 0 && !(kept && cached) && !(r.hour && u.CacheWrite1h > 0) {
		return a
	}
	still := cached && !late && r.last.Model == r.name && r.samePreamble()
	without, first, compacted := slices.Clone(passes), true, false
	for i := range without {
		p := &without[i]
		if r.hour { // without furl, these entries live as long as the others
			p.Usage.CacheWrite, p.Usage.CacheWrite1h = p.Usage.CacheWrite+p.Usage.CacheWrite1h, 0
		}
		switch {
		case !p.OnConversation():
		case first:
			p.Usage = usageWithout(p.Usage, a.Hidden, r.between.edited || kept, still, b.Of(r.between.counted, r.between.items))
			first = false
		case compacted: // what furl has hidden is in the provider's summary
		default:
			p.Usage = usageWithout(p.Usage, a.Hidden, false, false, 0)
		}
		compacted = compacted || p.Kind == furl.PassCompaction
	}
	a.Without = price.OfPasses(r.model, without, r.models, r.at)
	return a
}

// pricesKnown reports whether the prices of all passes are known.
func (r *accounted) pricesKnown(passes furl.Passes) bool {
	if !price.Known(r.model.Prices) {
		return false
	}
	for i := range passes {
		if name := passes[i].Model; name != "" && name != r.name && !price.Known(r.models(name).Prices) {
			return false
		}
	}
	return true
}

// account returns the costs of a request before its exchange is recorded. The head
// is the record that the request was sent for.
func (s *Session) account(sent *Fit, reply *protocol.Reply) *Account {
	r := &accounted{
		model: &sent.Budget.Model, models: s.models(), name: sent.Model, size: sent.size(),
		usage: price.Billed(&sent.Budget.Model, reply.Usage), passes: reply.Passes,
		preamble: sent.preamble, at: sent.At, dry: sent.Dry, hour: sent.HourCache,
		scale: sent.Budget.Scale, perItem: sent.Budget.PerItem,
	}
	if sent.View == nil { // not of this session
		r.usage, r.passes = furl.Usage{}, nil
		a := r.account()
		a.Prompt = cmp.Or(reply.Usage.Prompt(), a.Prompt)
		a.PromptWithout = a.Prompt
		return &a
	}
	st := s.log.State()
	hidden := !sent.Dry && event.Hides(st)
	s.sizes.update(s.log, s.models())
	r.last, r.when, r.between = s.sizes.last, s.sizes.when, s.sinceExchange()
	r.pinged = s.lastPing()
	if hidden {
		r.window = s.providerWindow(sent.Model)
		r.hidden = hiddenPart(st, sent.View, recordedPart(st))
	}
	a := r.account()
	if hidden {
		a.Refetched = repeatedCalls(st, reply)
	}
	return &a
}

// wasCached reports whether the provider has most likely cached the last
// prompt: its usage says so, or the model caches prompts automatically.
func wasCached(last *furl.Exchange, m *furl.Model) bool {
	if last == nil || m.Caching.Lifetime == 0 {
		return false
	}
	return usedCache(last.Usage) || !m.Caching.Explicit && last.Usage.Prompt() >= m.Caching.MinPrefix
}

func usedCache(u furl.Usage) bool { return u.CacheRead+u.CacheWrite+u.CacheWrite1h > 0 }

// usageWithout returns the estimated usage of a request without reductions: hidden
// tokens are added to the prompt. If furl edited the prompt, fresh is the size of
// the new messages, and held says that the cache had the rest.
func usageWithout(u furl.Usage, hidden int, edited, held bool, fresh int) furl.Usage {
	prompt := u.Prompt() + hidden
	out := furl.Usage{Output: u.Output, Reasoning: u.Reasoning}
	if !edited {
		out = u
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

// sinceExchange sums up the records on the path after its latest exchange.
func (s *Session) sinceExchange() sinceLast {
	var records []furl.Record
	from := s.log.Head()
	for from != 0 {
		r := s.log.At(from)
		if _, ok := r.Body.(*furl.Exchange); ok {
			break
		}
		records, from = append(records, r), r.Parent
	}
	var out sinceLast
	for i := len(records) - 1; i >= 0; i-- {
		out.record(records[i], from)
	}
	return out
}

// record adds the next record of the path. last is the latest exchange, 0 if there
// is none.
func (b *sinceLast) record(r furl.Record, last furl.Seq) {
	edit := func(client bool) {
		if !b.edited {
			b.edited, b.client = true, client
		}
	}
	switch body := r.Body.(type) {
	case *furl.Message:
		b.counted += body.Tokens()
		b.items += itemsOf(body)
	case *furl.Reduction:
		b.own += body.Cost.Own
		if body.Summary != nil {
			b.ownTokens += body.Summary.Usage.Prompt() + body.Summary.Usage.Output
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
func (r *accounted) cacheBreak(late bool) string {
	switch {
	case r.between.edited && !r.between.client && !late:
		return breakPlanned
	case !usedCache(r.last.Usage) || 2*r.passes.First(r.usage).CacheRead >= r.last.Usage.Prompt():
		return ""
	case r.last.Model != r.name:
		return breakModel
	case late:
		return breakExpired
	case r.between.client:
		return breakClient
	case !r.samePreamble():
		return breakPreamble
	}
	return breakUnexpected
}

// samePreamble reports whether instructions and tools are unchanged or unknown.
func (r *accounted) samePreamble() bool {
	return r.last.Preamble.IsZero() || r.preamble.IsZero() || r.last.Preamble == r.preamble
}

// countedPart is a size in counted tokens and items (furl.Budget.Of), without
// thinking: providers drop some of it themselves.
type countedPart struct{ tokens, items int }

func (p *countedPart) add(m *furl.Message) {
	for i := range m.Blocks {
		switch m.Blocks[i].Kind {
		case furl.KindThinking:
			continue
		case furl.KindCall, furl.KindResult:
			p.items++
		}
		p.tokens += m.Blocks[i].Tokens
	}
}

// recordedPart returns the size of the messages of a path as recorded.
func recordedPart(st *furl.State) (p countedPart) {
	for i := range st.Len() {
		_, m := st.Message(i)
		p.add(m)
	}
	return p
}

// hiddenPart returns by how much a view is smaller than the client's messages.
// recorded is the size of the path's messages as recorded. What the client has
// removed itself does not count.
func hiddenPart(st *furl.State, v *furl.View, recorded countedPart) countedPart {
	hidden := recorded
	left := leftOut(st)
	for p, tokens := range clientTokens(st) {
		if i, ok := st.Find(p.Msg); ok && !left.has(i) {
			if _, m := st.Message(i); p.Block < len(m.Blocks) && m.Blocks[p.Block].Kind != furl.KindThinking {
				hidden.tokens += tokens - m.Blocks[p.Block].Tokens
			}
		}
	}
	for _, r := range left {
		for i := r.from; i < r.to; i++ {
			seq, m := st.Message(i)
			if red, ok := st.Reduction(st.ShownBy(furl.Pos{Msg: seq})); !ok || !red.External() {
				continue // the client sends it again
			}
			var out countedPart
			out.add(m)
			hidden.tokens, hidden.items = hidden.tokens-out.tokens, hidden.items-out.items
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
				hidden.tokens -= sb.Tokens
			}
		}
	}
	hidden.items -= v.Items
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
