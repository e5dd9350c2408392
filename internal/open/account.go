package open

import (
	"cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// account returns the costs of a request before its exchange is recorded. The head
// is the record that the request was sent for.
func (c *Change) account(sent *policy.Fit, reply *protocol.Reply) *price.Account {
	r := &account.Sent{
		Model: &sent.Budget.Model, Models: c.models(), Name: sent.Model, Size: sent.Size(),
		Usage: price.Billed(&sent.Budget.Model, reply.Usage), Passes: reply.Passes, Terms: reply.Terms,
		Preamble: sent.Preamble, At: sent.At, Dry: sent.Dry, Hour: sent.HourCache,
		Scale: sent.Budget.Scale, PerItem: sent.Budget.PerItem,
	}
	if sent.View == nil { // not of this session
		r.Usage, r.Passes = furl.Usage{}, nil
		a := r.Account()
		a.Prompt = cmp.Or(reply.Usage.Prompt(), a.Prompt)
		a.PromptWithout, a.PromptMost = a.Prompt, a.Prompt
		return &a
	}
	st := c.log.State()
	hidden := !sent.Dry && event.Hides(st)
	c.sizes.Update(c.log, c.models())
	r.Last, r.When, r.Between = c.sizes.Last, c.sizes.When, c.sinceExchange()
	r.Pinged = c.lastPing()
	if hidden {
		r.Window = c.ProviderWindow(sent.Model)
		r.Hidden = account.HiddenPart(st, sent.View, account.RecordedPart(st))
	}
	a := r.Account()
	if hidden {
		a.Refetched = account.RepeatedCalls(st, reply)
	}
	return &a
}

// sinceExchange sums up the records on the path after its latest exchange.
func (c *Change) sinceExchange() account.SinceLast {
	var records []furl.Record
	from := c.log.Head()
	for from != 0 {
		r := c.log.At(from)
		if _, ok := r.Body.(*furl.Exchange); ok {
			break
		}
		records, from = append(records, r), r.Parent
	}
	var out account.SinceLast
	for i := len(records) - 1; i >= 0; i-- {
		out.Record(records[i], from)
	}
	return out
}
