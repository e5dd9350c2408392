package open

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
)

// BudgetFor returns the budget of a request for the session's head, the view before
// a plan, and the size of the preamble.
func (c *Change) BudgetFor(in Prompt) (furl.Budget, *furl.View, PreambleSize) {
	m := c.Model(in.Model)
	if in.Window > 0 && (m.Window == 0 || in.Window < m.Window) {
		m.Window, m.WindowAssumed = in.Window, false
	}
	whole := policy.NewBudget(m, 0)
	budgeted := in.Budget > 0 && (m.Window == 0 || in.Budget < whole.Room())
	if budgeted {
		m.Window, m.WindowAssumed = in.Budget, false
	}
	c.sizes.Update(c.log, c.models())
	life := in.Cache.Lifetime
	if life == 0 && c.sizes.Hourly {
		life = price.LongLifetime(&m)
	}
	m = price.WithLifetime(m, life)
	counter := c.all.CounterOf(&m)
	counted := c.all.preambleSize(in, counter)
	v := c.log.State().View(m)
	b := policy.NewBudget(m, 0)
	if in.MaxTokens > 0 && in.MaxTokens < b.Reserve || c.all.outputCounts(in.Model) && in.MaxTokens > b.Reserve {
		b.Reserve = in.MaxTokens
	}
	if budgeted {
		b.Reserve = 0
	}
	b.Counter, b.Recall = counter, c.HasRecall() || offersRecall(in.Preamble)
	b.Force = in.Force || in.Refused != nil
	b = c.sizes.Budget(v, in.Model, b, counted.Part, partOfTail(in.Tail, counter))
	if in.Refused != nil && in.Refused.Tokens > b.Size {
		b.Size = in.Refused.Tokens
	}
	if at := c.lastPing(); at.After(b.LastUse) && !b.LastUse.IsZero() {
		b.LastUse = at
	}
	b.Now = in.Now
	if b.Now.IsZero() {
		b.Now = c.now()
	}
	c.setCached(&b, in)
	if l := c.sizes.Last; l != nil && !l.Preamble.IsZero() && !in.Digest.IsZero() && l.Preamble != in.Digest {
		b.Cold = true
	}
	return b, v, counted
}

// setCached sets which messages have cache entries, and which of these live longer than
// others. A client that sets no breakpoint for its messages pays for all of them as fresh
// input, unless the last reply says that something on the way has set one.
func (c *Change) setCached(b *furl.Budget, in Prompt) {
	last := c.sizes.Last
	b.Uncached = in.Cache.Uncached && b.Model.Caching.Explicit && (last == nil || !account.UsedCache(last.Usage))
	if b.Model.Caching.Lifetime >= time.Hour || in.Cache.Lifetime == 0 || in.Cache.HourTail < 0 {
		return
	}
	st := c.log.State()
	if i := st.Len() - 1 - max(0, in.Cache.HourTail-len(in.Tail)); i >= 0 {
		b.LongTo, _ = st.Message(i)
	}
}

// HasRecall reports whether the model can call recall tools that furl or the program
// adds to the session's requests.
func (c *Change) HasRecall() bool {
	return c.all.live().Recall || c.Meta().Settings[SettingRecall] != ""
}

// offersRecall reports whether one of a request's tools is memory_get of furl's MCP
// server. Clients put the server's name before it, as in mcp__furl__memory_get.
func offersRecall(preamble []furl.Block) bool {
	return slices.ContainsFunc(preamble, func(b furl.Block) bool {
		return b.Kind == furl.KindOpaque && strings.HasSuffix(b.ID, "memory_get") && strings.Contains(b.Text, "furl:")
	})
}

// planRequest plans for the head and appends the reductions. It does not ask a model for a
// summary; asked is the plan of a policy that has, or nil. The session is locked.
func (c *Change) planRequest(ctx context.Context, in Prompt, asked *modelPlan) (fit *policy.Fit, err error) {
	c.s.hourCache = in.HourCache
	var refused *furl.Reduction
	if in.ThinkingRefused != nil {
		if refused, err = c.leaveOutThinking(in); err != nil {
			return nil, err
		}
	}
	switch {
	case asked != nil && !asked.outdated:
		for _, red := range asked.plan.Reductions {
			if _, err := c.Append(furl.Furl, red); err != nil {
				return nil, fmt.Errorf("record a plan: %w", err)
			}
		}
		fit = c.newFit(in, asked.budget, asked.plan, asked.counted)
	case in.DryRun:
		fit, err = c.planDryRun(ctx, in)
	default:
		fit, err = c.planWithReady(ctx, in, asked)
	}
	if err != nil {
		return nil, err
	}
	if refused != nil {
		fit.Plan = withReduction(fit.Plan, refused, fit.Plan.Before)
		fit.Plan.Steps = slices.Insert(slices.Clone(fit.Plan.Steps), 0, furl.PlanStep{
			Stage: furl.StageRefusedThinking, Skipped: "the provider refused thinking of earlier replies", Before: refused.Before, After: refused.After,
		})
	}
	if o := in.Refused; o != nil {
		fit.Plan.Steps = slices.Insert(fit.Plan.Steps, 0, furl.PlanStep{
			Stage: event.StageOverflow, Skipped: "the provider refused the prompt as too long", Before: o.Tokens, After: o.Limit,
		})
	}
	return fit, nil
}

// planWithReady plans without asking a model. A summary that is ready, or was written
// while the session changed, is recorded first if it still applies, and the plan is
// made on top of it.
func (c *Change) planWithReady(ctx context.Context, in Prompt, asked *modelPlan) (*policy.Fit, error) {
	b, v, counted := c.BudgetFor(in)
	before := b.Size
	var summary *furl.Reduction
	var err error
	if asked != nil {
		if summary, err = c.recordPlannedSummary(asked.plan, b); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		b = b.After(v, c.log.State().View(b.Model))
	}
	plan, err := c.runPolicy(ctx, in, b)
	if err != nil {
		return nil, err
	}
	if summary == nil {
		before = plan.Before
		if summary, err = c.recordReadySummary(in, b, plan); err != nil {
			return nil, err
		}
		if summary != nil {
			b = b.After(v, c.log.State().View(b.Model))
			if plan, err = c.runPolicy(ctx, in, b); err != nil {
				return nil, err
			}
		}
	}
	plan = c.skippedWaiting(plan, &b)
	for _, red := range plan.Reductions {
		if _, err := c.Append(furl.Furl, red); err != nil {
			return nil, fmt.Errorf("record a plan: %w", err)
		}
	}
	if summary != nil {
		plan = withReduction(plan, summary, before)
	}
	return c.newFit(in, b, plan, counted), nil
}

// runPolicy plans by the session's policy without asking a model.
func (c *Change) runPolicy(ctx context.Context, in Prompt, b furl.Budget) (*furl.Plan, error) {
	p, err := c.PolicyWithoutModel(in)
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan(ctx, c.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	return plan, nil
}

// PolicyWithoutModel returns the policy of a request without its summarizer.
func (c *Change) PolicyWithoutModel(in Prompt) (furl.Policy, error) {
	set := c.PolicySettings()
	if in.Adjust != nil {
		set = in.Adjust(set)
	} else if set.Summarizer == nil && in.Policy == "" {
		return c.Policy()
	}
	set.Summarizer = nil
	return c.policyWith(in, set)
}

// policyFor returns the policy of a request.
func (c *Change) policyFor(in Prompt) (furl.Policy, error) {
	set := c.PolicySettings()
	switch {
	case in.Adjust != nil:
		set = in.Adjust(set)
	case in.Policy == "":
		return c.Policy()
	}
	return c.policyWith(in, set)
}

// policyWith returns the policy of a request with other settings.
func (c *Change) policyWith(in Prompt, set policy.Settings) (furl.Policy, error) {
	live := c.all.live()
	p, err := live.Policies.Policy(cmp.Or(in.Policy, c.PolicyName()), set)
	if err != nil {
		p, err = live.Policies.Policy(live.Policy, set)
	}
	return p, err
}

// recordPlannedSummary records the summary of an outdated plan if it still applies to the
// session. It returns the reduction, nil if it recorded none.
func (c *Change) recordPlannedSummary(plan *furl.Plan, b furl.Budget) (*furl.Reduction, error) {
	for _, red := range plan.Reductions {
		if red.Summary == nil || red.Summary.Request == "" {
			continue
		}
		red, err := policy.Commit(c.log.State(), b, red)
		if err == nil {
			_, err = c.Append(furl.Furl, red)
		}
		if err == nil {
			return red, nil
		}
		c.all.log.Info("summary discarded: it came too late", "session", c.key.Session, "error", err)
	}
	return nil, nil
}

// newFit returns the fit for the head after a plan.
func (c *Change) newFit(in Prompt, b furl.Budget, plan *furl.Plan, counted PreambleSize) *policy.Fit {
	// The plan's own view is not used: it has expected record numbers of the
	// reductions, which differ after a rewind.
	v := c.log.State().View(b.Model)
	f := &policy.Fit{
		Model: in.Model, View: v, Plan: plan, Budget: b, Head: c.log.Head(), At: b.Now,
		Preamble: in.Digest, Counted: counted.Part, ToolShare: counted.Tools, UnknownTypes: UnknownTypesOf(c.log.State()),
		HourCache: c.wantsHourCache(in, &b, v), Repair: c.repair,
	}
	if b.Model.Thinking.Binds {
		f.Prefix, f.Thinking = v.Prefix(), v.LastThinking
	}
	if b.Window == 0 {
		c.all.warnUnknownWindow(in.Model)
	}
	f.Assumed = c.warnAssumed(in.Model, &b.Model)
	for _, w := range plan.Warnings {
		if c.s.warned[w.Code] {
			continue // logged before
		}
		if c.s.warned == nil {
			c.s.warned = make(map[string]bool)
		}
		c.s.warned[w.Code] = true
		c.all.log.Warn(w.Text, "session", c.key.Session, "code", w.Code)
	}
	return f
}

// Bodies are the bodies of a request: Received is the request as the client sent it, and
// Sent the body that was sent in its place. If they are set, Change.Observe records how to
// rebuild both.
type Bodies struct {
	Received *protocol.Request
	Sent     []byte
}

// Observe records the result of a request: an exchange with its usage, and the
// messages of the reply. If the head has changed since the request, it rewinds to
// the head that the request was sent for. If the log has the reply already, because
// another process was faster with the client's next request, only the exchange is
// recorded, and the conversation continues where it was. It sets sent.Account.
// fresh is false if the reply was recorded before.
func (c *Change) Observe(ctx context.Context, sent *policy.Fit, bodies Bodies, reply *protocol.Reply) (fresh bool, err error) {
	if c.alreadyObserved(sent.Head, reply) {
		return false, nil
	}
	head, hasReply := c.log.Head(), c.hasReplyOfClient(sent.Head, reply)
	if head != sent.Head {
		r, err := c.Rewind(sent.Head, furl.Upstream)
		if err != nil {
			return false, err
		}
		if r.Parent != sent.Head {
			return false, fmt.Errorf("observe reply: the request ends at record %d, inside a step: %w", sent.Head, furl.ErrNotOnPath)
		}
	}
	sent.Account = c.account(sent, reply)
	hidden := 0
	if sent.View != nil && account.HasReductions(c.log.State()) {
		hidden, _ = account.Hidden(c.log.State(), sent.View)
		hidden = sent.Budget.Of(hidden, 0)
	}
	if err := c.recordExchange(ctx, sent, bodies, reply); err != nil {
		return false, err
	}
	if hasReply {
		if err := c.returnTo(head); err != nil {
			return false, err
		}
	} else {
		counter := c.all.CounterOf(&sent.Budget.Model)
		for _, m := range reply.Messages {
			if _, err := c.AppendMessage(m, counter); err != nil {
				return false, err
			}
		}
	}
	m := c.Meta().Clone()
	m.RecordAnswered(sent.Model, (&furl.Exchange{Model: sent.Model, Usage: reply.Usage, Passes: reply.Passes}).LargestPrompt())
	m.Model, m.Window, m.ToolShare = sent.Model, c.plannedWindow(sent.Model), sent.ToolShare
	if m.Format == "" {
		m.Format = reply.Format
	}
	c.addToLedger(&m, sent, hidden)
	c.noteNextInput(ctx, &m, sent)
	c.SetMeta(m)
	return true, nil
}

// exchangeOf returns the exchange of a fit, without the bodies of its request.
func exchangeOf(sent *policy.Fit, reply *protocol.Reply) *furl.Exchange {
	ex := &furl.Exchange{
		Model: sent.Model, Preamble: sent.Preamble, View: sent.Prefix, Thinking: sent.Thinking,
		Usage: price.Billed(&sent.Budget.Model, reply.Usage), Passes: reply.Passes, Terms: reply.Terms, ResponseID: reply.ID, Stop: reply.Stop,
		Plan: sent.PlanSteps(), Estimated: sent.Size(),
	}
	if reply.Complete && ex.Stop == "" {
		ex.Stop = furl.StopUnstated
	}
	return ex
}

// recordExchange records the exchange of a fit.
func (c *Change) recordExchange(ctx context.Context, sent *policy.Fit, bodies Bodies, reply *protocol.Reply) error {
	ex := exchangeOf(sent, reply)
	c.describeRequest(ctx, ex, bodies)
	c.sizes.Update(c.log, c.models())
	r, err := c.log.Append(c.log.Head(), sent.At, furl.Furl, ex)
	if err != nil {
		return err
	}
	c.sizes.RecordAppended(r, c.log, c.models())
	c.sizes.Preamble = sent.Counted
	c.all.recordAccepted(sent.Model, ex.LargestPrompt())
	return nil
}

// alreadyObserved reports whether the exchange of a reply is already recorded after a
// record.
func (c *Change) alreadyObserved(after furl.Seq, reply *protocol.Reply) bool {
	if reply.ID == "" {
		return false
	}
	for _, r := range c.log.Records(after) {
		if ex, ok := r.Body.(*furl.Exchange); ok && r.Parent == after && ex.ResponseID == reply.ID {
			return true
		}
	}
	return false
}

// preambleKey identifies a preamble and the model whose tokens are counted.
type preambleKey struct {
	digest furl.Digest
	model  string
}

// maxPreambles is the largest number of cached preamble sizes.
const maxPreambles = 1000

// PreambleSize is the size of a preamble, and the share of tools in it, from 0 to 1.
type PreambleSize struct {
	token.Part
	Tools float64
}

// preambleSize returns the size of a request's preamble. Sizes are cached, because clients
// send the same long preamble with every request.
func (a *shared) preambleSize(in Prompt, c furl.Counter) PreambleSize {
	if in.Digest.IsZero() {
		return countPreamble(in.Preamble, c)
	}
	key := preambleKey{in.Digest, in.Model}
	a.mu.Lock()
	p, ok := a.preambles[key]
	a.mu.Unlock()
	if ok {
		return p
	}
	p = countPreamble(in.Preamble, c)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.preambles == nil || len(a.preambles) >= maxPreambles {
		a.preambles = make(map[preambleKey]PreambleSize)
	}
	a.preambles[key] = p
	return p
}

// present returns the blocks of a preamble that are in the prompt: all but the definitions
// of deferred tools.
func present(preamble []furl.Block) []furl.Block {
	return slices.DeleteFunc(slices.Clone(preamble), func(b furl.Block) bool { return b.Deferred })
}

// countPreamble counts a preamble.
func countPreamble(preamble []furl.Block, c furl.Counter) PreambleSize {
	if len(preamble) == 0 {
		return PreambleSize{}
	}
	m := furl.Message{Blocks: present(preamble)}
	m.Measure(c)
	tools, all := 0, 0
	for i := range m.Blocks {
		all += m.Blocks[i].Tokens
		if m.Blocks[i].Kind == furl.KindOpaque {
			tools += m.Blocks[i].Tokens
		}
	}
	p := PreambleSize{Part: token.PartOf(m.Blocks)}
	if all > 0 {
		p.Tools = math.Round(1000*float64(tools)/float64(all)) / 1000
	}
	return p
}

// PreambleDigest returns a digest of a preamble.
func PreambleDigest(preamble []furl.Block) furl.Digest {
	preamble = present(preamble)
	if len(preamble) == 0 {
		return furl.Digest{}
	}
	m := furl.Message{Role: furl.RoleSystem}
	for i := range preamble {
		m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindText, Text: preamble[i].Text})
	}
	m.Seal()
	return m.Digest
}

// partOfTail returns the size of the messages that a request has after the path.
func partOfTail(tail []furl.Message, c furl.Counter) token.Part {
	var p token.Part
	for i := range tail {
		m := tail[i]
		m.Blocks = append([]furl.Block(nil), m.Blocks...)
		m.Measure(c)
		p = p.Plus(token.PartOf(m.Blocks))
	}
	return p
}
