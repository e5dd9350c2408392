package open

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/internal/nextinput"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// NextInput returns what the input of the next message costs, or nil if no price or no prompt
// cache is known. That of the newest request is in the ledger, so it is computed only if the
// session has changed since.
func (c *Change) NextInput(ctx context.Context) (*storage.NextInput, error) {
	name := c.PolicyName()
	if l := c.Meta().Ledger; l != nil && l.Next != nil && l.Next.Record == c.log.Head() && l.Next.Policy == name {
		return l.Next, nil
	}
	c.sizes.Update(c.log, c.models())
	last := c.sizes.Last
	if last == nil {
		return nil, nil
	}
	in := Prompt{Model: last.Model}
	b, v, _ := c.BudgetFor(in)
	cache := &b.Model.Caching
	if cache.Lifetime == 0 || b.Size < cache.MinPrefix || cache.Explicit && !account.UsedCache(last.Usage) || b.LastUse.IsZero() {
		return nil, nil
	}
	p := nextinput.Prompt{
		Model: &b.Model, Terms: last.Terms, Now: b.Now, Used: b.LastUse, Size: b.Size, Cached: last.LargestPrompt(), Fixed: b.Fixed,
		HourFixed: account.HadHourCache(last.Plan) || last.Usage.CacheWrite > 0 && last.Usage.CacheWrite1h > 0,
	}
	if c.sizes.Edited {
		before, err := c.viewOfLastRequest(b.Model)
		if err != nil {
			return nil, err
		}
		p.Cached = min(p.Cached, b.Size-policy.PriceOf(before, v, b).Rewrite)
	}
	b.Cold = true
	plan, err := c.runPolicy(ctx, in, b)
	if err != nil {
		return nil, err
	}
	p.Hidden = plan.Before - plan.After
	in.HourCache = c.s.hourCache
	b.Now = b.LastUse.Add(cache.Lifetime + time.Second)
	p.HourNext = c.wantsHourCache(in, &b, plan.View)
	out := nextinput.Of(&p)
	if out != nil {
		out.Record, out.Policy = c.log.Head(), name
	}
	return out, nil
}

// viewOfLastRequest returns the view of the newest request on the path.
func (c *Change) viewOfLastRequest(m furl.Model) (*furl.View, error) {
	path := c.log.Path(c.log.Head())
	for i := len(path) - 1; i >= 0; i-- {
		if _, ok := path[i].Body.(*furl.Exchange); !ok {
			continue
		}
		st, err := furl.Fold(c.log, path[i].Seq)
		if err != nil {
			return nil, fmt.Errorf("view of the newest request: %w", err)
		}
		return st.View(m), nil
	}
	return new(furl.State).View(m), nil
}

// noteNextInput sets what the next input costs in the ledger of a session's new metadata. A
// request of a dry run has sent what the session hides, so the ledger has no figure.
func (c *Change) noteNextInput(ctx context.Context, m *storage.Meta, sent *policy.Fit) {
	m.Ledger.Next = nil
	if sent.Dry && event.Hides(c.log.State()) {
		return
	}
	next, err := c.NextInput(ctx)
	if err != nil {
		c.all.log.Warn("price of the next message unknown", "session", c.key.Session, "error", err)
		return
	}
	m.Ledger.Next = next
}
