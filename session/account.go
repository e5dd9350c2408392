package session

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// Account is the cost of a request, and its estimated cost without reductions.
// Costs are in US dollars.
type Account struct {
	// Priced reports whether the model's prices are known. Otherwise all costs
	// are 0.
	Priced bool
	// Cost is the cost of the reported usage.
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
	client         bool // the client made the edit
	own            float64
	ownTokens      int
}

// account returns the costs of a request before its exchange is recorded. The head
// is the record that the request was sent for.
//
// The cost without reductions follows from the reported usage and the estimated
// size of the hidden blocks. If furl did not change the prompt since the previous
// request, the hidden blocks would have been billed like the rest of the old
// prompt: as cache reads if there were any, else as cache writes or input. If it
// did, then without the change the old prompt would have been read from the cache,
// unless that had expired, and only the new messages written. In both cases the
// reply is assumed to be the same. A prompt above the window is priced as if the
// provider had accepted it.
func (s *Session) account(sent *Fit, reply *protocol.Reply) *Account {
	a := &Account{Prompt: reply.Usage.Prompt()}
	if a.Prompt == 0 {
		a.Prompt = sent.size()
	}
	a.PromptWithout = a.Prompt
	if sent.View == nil {
		return a
	}
	st := s.log.State()
	hidden := !sent.Dry && event.Hides(st)
	if hidden {
		a.Refetched = repeatedCalls(st, reply)
	}
	s.sizes.update(s.log, s.all)
	last, when := s.sizes.last, s.sizes.when
	between := s.sinceExchange()
	a.Own, a.OwnTokens = between.own, between.ownTokens
	b := &sent.Budget
	if hidden {
		a.Hidden = hiddenTokens(st, sent.View, b)
		a.PromptWithout = a.Prompt + a.Hidden
		window := s.providerWindow(sent.Model)
		a.Over = window > 0 && a.PromptWithout > window
	}
	u := reply.Usage
	if u == (furl.Usage{}) {
		return a
	}
	late := last != nil && sent.At.Sub(when) > b.Model.Caching.Lifetime
	if wasCached(last, &b.Model) && !wasDry(last.Plan) && !sent.Dry {
		a.Break = cacheBreak(sent, u, last, between, late)
	}
	if a.Priced = price.Known(b.Model.Prices); a.Priced {
		a.Cost = price.OfRequest(&b.Model, u)
		a.Without = a.Cost
	}
	if a.Priced && a.Hidden > 0 {
		still := wasCached(last, &b.Model) && !late && last.Model == sent.Model && samePreamble(last, sent)
		a.Without = price.OfRequest(&b.Model, usageWithout(u, a.Hidden, between.edited, still, b.Of(between.counted, between.items)))
	}
	return a
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
	var out sinceLast
	from := s.log.Head()
	for from != 0 {
		if _, ok := s.log.At(from).Body.(*furl.Exchange); ok {
			break
		}
		from = s.log.At(from).Parent
	}
	for q := s.log.Head(); q != from; q = s.log.At(q).Parent {
		switch b := s.log.At(q).Body.(type) {
		case *furl.Message:
			out.counted += b.Tokens()
			out.items += itemsOf(b)
		case *furl.Reduction:
			out.own += b.Cost.Own
			if b.Summary != nil {
				out.ownTokens += b.Summary.Usage.Prompt() + b.Summary.Usage.Output
			}
			if coversUpTo(b, from) {
				out.edited = true
				out.client = b.Stage == event.StageClient
			}
		case *furl.Takeover:
			for _, body := range b.Taken() {
				if red, ok := body.(*furl.Reduction); ok && coversUpTo(red, from) {
					out.edited, out.client = true, red.Stage == event.StageClient
				}
			}
		case *furl.Restoration:
			if b.Of != 0 || b.Open {
				out.edited, out.client = true, false
			}
		}
	}
	return out
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
func cacheBreak(sent *Fit, u furl.Usage, last *furl.Exchange, between sinceLast, late bool) string {
	switch {
	case between.edited && !between.client && !late:
		return breakPlanned
	case !usedCache(last.Usage) || 2*u.CacheRead >= last.Usage.Prompt():
		return ""
	case last.Model != sent.Model:
		return breakModel
	case late:
		return breakExpired
	case between.client:
		return breakClient
	case !samePreamble(last, sent):
		return breakPreamble
	}
	return breakUnexpected
}

// samePreamble reports whether instructions and tools are unchanged or unknown.
func samePreamble(last *furl.Exchange, sent *Fit) bool {
	return last.Preamble.IsZero() || sent.preamble.IsZero() || last.Preamble == sent.preamble
}

// hiddenTokens returns by how much a view is smaller than the client's messages, in
// the provider's tokens. Thinking does not count, because providers drop some of it
// themselves. What the client has removed itself does not count either.
func hiddenTokens(st *furl.State, v *furl.View, b *furl.Budget) int {
	counted, items := 0, 0
	client := clientTokens(st)
	for i := range st.Len() {
		seq, m := st.Message(i)
		items += itemsOf(m)
		for j := range m.Blocks {
			if m.Blocks[j].Kind == furl.KindThinking {
				continue
			}
			if n, ok := client[furl.Pos{Msg: seq, Block: j}]; ok {
				counted += n
			} else {
				counted += m.Blocks[j].Tokens
			}
		}
	}
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; sb.Block.Kind != furl.KindThinking {
				counted -= sb.Tokens
			}
		}
	}
	return max(0, b.Of(counted, items-v.Items))
}

// clientTokens returns the sizes of the blocks that the client has changed, as the
// client sends them.
func clientTokens(st *furl.State) map[furl.Pos]int {
	var sizes map[furl.Pos]int
	for red := range st.Reductions() {
		if red.Undone || red.Stage != event.StageClient {
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

// repeatedCalls counts the calls of a reply that repeat an earlier call whose
// results are all hidden.
func repeatedCalls(st *furl.State, reply *protocol.Reply) (n int) {
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall && isRepeated(st, b) {
				n++
			}
		}
	}
	return n
}

func isRepeated(st *furl.State, call *furl.Block) bool {
	ids := make(map[string]bool)
	results := 0
	for i := range st.Len() {
		seq, m := st.Message(i)
		for k := range m.Blocks {
			switch b := &m.Blocks[k]; {
			case b.Kind == furl.KindCall && b.Name == call.Name && bytes.Equal(b.Args, call.Args):
				ids[b.ID] = true
			case b.Kind == furl.KindResult && ids[b.ID]:
				if st.ShownBy(furl.Pos{Msg: seq, Block: k}) == 0 {
					return false
				}
				results++
			}
		}
	}
	return results > 0
}
