package session

import (
	"bytes"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// Account is what a request cost, and what it would have cost had nothing been
// hidden, as far as usage and prices tell. Money is in US dollars.
type Account struct {
	// Priced says that the model's prices are known; without them there are
	// no figures in money.
	Priced bool
	// Cost is the price of what the provider reported.
	Cost float64
	// Without estimates the price had nothing been hidden, see account. It is
	// Cost where nothing is.
	Without float64
	// Over says that without what was hidden the prompt would not have fitted
	// the model's window, so that there is nothing to compare with: Without
	// is Cost.
	Over bool
	// Own is what furl spent on summaries that were recorded since the
	// request before.
	Own float64
	// Hidden is what the prompt lacked, in the provider's tokens as estimated,
	// thinking aside.
	Hidden int
	// Break says why the provider's cache could not be used for what the
	// request before had sent: planned, client,
	// model, preamble, expired or unexpected; "" if it was.
	Break string
	// Refetched counts the reply's calls that repeat an earlier one, name and
	// arguments, whose results are all hidden.
	Refetched int
}

// Why a request could not use what the provider had cached of the one before.
const (
	breakPlanned    = "planned"    // furl hid or showed something in it
	breakClient     = "client"     // the client changed its history
	breakModel      = "model"      // another model was asked
	breakPreamble   = "preamble"   // instructions or tools have changed
	breakExpired    = "expired"    // it came too late
	breakUnexpected = "unexpected" // none of these
)

// since is what happened on the path after the exchange before.
type since struct {
	counted, items int // of the messages
	edited         bool
	client         bool // what was edited, the client did itself
	own            float64
}

// account reckons up a request before its exchange is recorded. The head is
// what was sent.
//
// What it would have cost without furl follows from the provider's report and
// the estimated size of what is hidden. Since the request before, either
// nothing in the prompt was changed: then what is hidden would have been billed
// as the rest of the old prompt was, read from the cache if any of it was, else
// written to it or fresh as the report has it. Or something was: then without
// the change all but what is new would have been read from the cache, if it
// still held the prompt, and only what is new would have been written. In both,
// the reply is taken to be the same.
func (s *Session) account(sent *Fit, reply *protocol.Reply) *Account {
	a := &Account{}
	if sent.View == nil {
		return a
	}
	st := s.log.State()
	hidden := !sent.Dry && event.Hides(st)
	if hidden {
		a.Refetched = refetched(st, reply)
	}
	s.sizes.follow(s.log, s.all)
	last, when := s.sizes.last, s.sizes.when
	between := s.sinceExchange()
	a.Own = between.own
	u := reply.Usage
	if u == (furl.Usage{}) {
		return a
	}
	b := &sent.Budget
	late := last != nil && sent.At.Sub(when) > b.Model.Caching.Lifetime
	if held(last, &b.Model) && !wasDry(last.Plan) && !sent.Dry {
		a.Break = breakOf(sent, u, last, between, late)
	}
	if a.Priced = price.Known(b.Model.Prices); a.Priced {
		a.Cost = price.OfRequest(&b.Model, u)
		a.Without = a.Cost
	}
	if !hidden {
		return a
	}
	a.Hidden = missing(st, sent.View, b)
	if window := s.all.windowOf(sent.Model); window > 0 && u.Prompt()+a.Hidden > window {
		a.Over = true
		return a
	}
	if a.Priced && a.Hidden > 0 {
		still := held(last, &b.Model) && !late && last.Model == sent.Model && samePreamble(last, sent)
		a.Without = price.OfRequest(&b.Model, without(u, a.Hidden, between.edited, still, b.Of(between.counted, between.items)))
	}
	return a
}

// held reports whether a provider can be taken to have kept a prompt: it has
// said so, or does so by itself.
func held(last *furl.Exchange, m *furl.Model) bool {
	if last == nil || m.Caching.Lifetime == 0 {
		return false
	}
	return kept(last.Usage) || !m.Caching.Explicit && last.Usage.Prompt() >= m.Caching.MinPrefix
}

func kept(u furl.Usage) bool { return u.CacheRead+u.CacheWrite+u.CacheWrite1h > 0 }

// without is the usage of a request that hides nothing: the prompt has so many
// tokens more. If it was edited, fresh is what is new in it, and held says that
// the cache had all the rest.
func without(u furl.Usage, hidden int, edited, held bool, fresh int) furl.Usage {
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

// sinceExchange adds up what is on the path after its newest exchange.
func (s *Session) sinceExchange() since {
	var out since
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
			if touches(b, from) {
				out.edited = true
				out.client = b.Stage == event.StageClient
			}
		case *furl.Takeover:
			for _, body := range b.Taken() {
				if red, ok := body.(*furl.Reduction); ok && touches(red, from) {
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

// touches reports whether a reduction covers anything up to a record: what came
// later was in no prompt yet.
func touches(red *furl.Reduction, upto furl.Seq) bool {
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

// breakOf says why the cache was not used: where furl changed the prompt, it
// could not be; otherwise the report tells that less than half of what it held
// was read.
func breakOf(sent *Fit, u furl.Usage, last *furl.Exchange, between since, late bool) string {
	switch {
	case between.edited && !between.client && !late:
		return breakPlanned
	case !kept(last.Usage) || 2*u.CacheRead >= last.Usage.Prompt():
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

// samePreamble reports whether instructions and tools are what they were, as
// far as both are known.
func samePreamble(last *furl.Exchange, sent *Fit) bool {
	return last.Preamble.IsZero() || sent.preamble.IsZero() || last.Preamble == sent.preamble
}

// missing is what a view lacks of its path, in the provider's tokens. Thinking
// is left aside on both sides: providers drop some of it themselves.
func missing(st *furl.State, v *furl.View, b *furl.Budget) int {
	counted, items := 0, 0
	for i := range st.Len() {
		_, m := st.Message(i)
		items += itemsOf(m)
		for j := range m.Blocks {
			if m.Blocks[j].Kind != furl.KindThinking {
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

// refetched counts the calls of a reply that were made before and of which no
// result is shown.
func refetched(st *furl.State, reply *protocol.Reply) (n int) {
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall && refetches(st, b) {
				n++
			}
		}
	}
	return n
}

func refetches(st *furl.State, call *furl.Block) bool {
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
