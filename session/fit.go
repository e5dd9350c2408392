package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/wire"
)

// Fit is the prompt for a model: the view after a plan was made and recorded. Pass
// it to Session.Observe with the reply, so that the next plan knows its cost.
type Fit struct {
	// Model is the model's name in requests.
	Model string
	// View is what the model sees. It is read-only. Its spans and state are valid
	// only until the session changes.
	View *furl.View
	// Plan is the policy's plan, Budget the input of the plan.
	Plan   *furl.Plan
	Budget furl.Budget
	// Head is the record whose view this is.
	Head furl.Seq
	// At is when the plan was made.
	At time.Time
	// Dry reports whether this is a dry run: the plan is not recorded, and View
	// is the prompt without it.
	Dry bool
	// Unbound reports that a dry run's prompt is not View, so no thinking is bound to
	// View.
	Unbound bool
	// UnknownTypes are types of blocks and items in the conversation that furl does
	// not know, at most 9 short names. Their steps are always sent unchanged.
	UnknownTypes []string
	// Assumed is a note for people if the rules of the model are assumed from its family
	// and the session has not said so before, else "".
	Assumed string
	// HourCache reports that the request should ask for cache entries of one hour for
	// the client's instructions and tools (wire.API.HourPreamble). Encode clears it if
	// the request does not.
	HourCache bool
	// Received is the request as the client sent it, and Sent the body that was sent
	// in its place. If they are set, Observe records how to rebuild both; see
	// Session.ReceivedBody.
	Received *protocol.Request
	Sent     []byte
	// Account is the cost of the request, nil until its reply is observed.
	Account *Account

	sent     int // size of a dry run's View where more is hidden without one; 0: Plan.Before
	preamble furl.Digest
	counted  preambleSize
	prefix   furl.Digest
	thinking furl.Pos
}

// Encode returns the view as the elements of a request's list in a wire format:
// messages of Anthropic or Chat Completions, items of Responses.
func (f *Fit) Encode(format furl.Format) ([]json.RawMessage, error) {
	api := wire.For(format)
	if api == nil {
		return nil, fmt.Errorf("unknown wire format %q", format)
	}
	return api.EncodeView(f.View)
}

// View returns what a model would see now, without a new plan. model is its name in
// requests. See Fit.View for the validity of the result.
func (s *Session) View(model string) *furl.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.State().View(s.model(model))
}

// Fit makes the session fit a model's context window by its policy: it plans,
// records the reductions, and returns the view. The preamble is what is sent in
// addition to the messages; instructions as text
// blocks, and each tool as an opaque block with its JSON as the text. It counts and
// is never reduced.
//
// If the policy asks a model for a summary, the session can be used while that is
// written. The summary is discarded if it no longer applies to the session. With the
// setting ask_first, Fit asks no model; prepare summaries with SummaryStage and
// PrepareSummary.
func (s *Session) Fit(ctx context.Context, model string, preamble ...furl.Block) (*Fit, error) {
	in := transact.Prompt{Model: model, Preamble: preamble, Digest: preambleDigest(preamble), HourCache: protocol.HourNever}
	d, err := s.prepareRequest(ctx, preparation{Prompt: func(transact.Tx[*Fit]) transact.Prompt { return in }})
	if err != nil {
		return nil, err
	}
	if err := s.commitDraft(ctx, onDisk, d); err != nil {
		return nil, err
	}
	return d.fit, nil
}

// budgetFor returns the budget of a request for the session's head, the view before
// a plan, and the size of the preamble.
func (s *Session) budgetFor(in transact.Prompt) (furl.Budget, *furl.View, preambleSize) {
	m := s.model(in.Model)
	if in.Window > 0 && (m.Window == 0 || in.Window < m.Window) {
		m.Window, m.WindowAssumed = in.Window, false
	}
	whole := policy.NewBudget(m, 0)
	budgeted := in.Budget > 0 && (m.Window == 0 || in.Budget < whole.Room())
	if budgeted {
		m.Window, m.WindowAssumed = in.Budget, false
	}
	s.sizes.update(s.log, s.models())
	life := in.Cache.Lifetime
	if life == 0 && s.sizes.hourly {
		life = price.LongLifetime(&m)
	}
	m = price.WithLifetime(m, life)
	counter := s.all.counter(&m)
	counted := s.all.preambleSize(in, counter)
	v := s.log.State().View(m)
	b := policy.NewBudget(m, 0)
	if in.MaxTokens > 0 && in.MaxTokens < b.Reserve || s.all.outputCounts(in.Model) && in.MaxTokens > b.Reserve {
		b.Reserve = in.MaxTokens
	}
	if budgeted {
		b.Reserve = 0
	}
	b.Counter, b.Recall = counter, s.hasRecall() || offersRecall(in.Preamble)
	b.Force = in.Force || in.Refused != nil
	b = s.sizes.budget(v, in.Model, b, counted.Part, partOfTail(in.Tail, counter))
	if in.Refused != nil && in.Refused.Tokens > b.Size {
		b.Size = in.Refused.Tokens
	}
	if at := s.lastPing(); at.After(b.LastUse) && !b.LastUse.IsZero() {
		b.LastUse = at
	}
	b.Now = in.Now
	if b.Now.IsZero() {
		b.Now = s.now()
	}
	s.setCached(&b, in)
	if l := s.sizes.last; l != nil && !l.Preamble.IsZero() && !in.Digest.IsZero() && l.Preamble != in.Digest {
		b.Cold = true
	}
	return b, v, counted
}

// setCached sets which messages have cache entries, and which of these live longer than
// others. A client that sets no breakpoint for its messages pays for all of them as fresh
// input, unless the last reply says that something on the way has set one.
func (s *Session) setCached(b *furl.Budget, in transact.Prompt) {
	last := s.sizes.last
	b.Uncached = in.Cache.Uncached && b.Model.Caching.Explicit && (last == nil || !usedCache(last.Usage))
	if b.Model.Caching.Lifetime >= time.Hour || in.Cache.Lifetime == 0 || in.Cache.HourTail < 0 {
		return
	}
	st := s.log.State()
	if i := st.Len() - 1 - max(0, in.Cache.HourTail-len(in.Tail)); i >= 0 {
		b.LongTo, _ = st.Message(i)
	}
}

// hasRecall reports whether the model can call recall tools that furl or the program
// adds to the session's requests.
func (s *Session) hasRecall() bool {
	return s.all.live().Recall || s.meta.Settings[transact.SettingRecall] != "" || s.newMeta != nil && s.newMeta.Settings[transact.SettingRecall] != ""
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
func (s *Session) planRequest(ctx context.Context, in transact.Prompt, asked *modelPlan) (fit *Fit, err error) {
	var refused *furl.Reduction
	if in.ThinkingRefused != nil {
		if refused, err = s.leaveOutThinking(in); err != nil {
			return nil, err
		}
	}
	switch {
	case asked != nil && !asked.outdated:
		for _, red := range asked.plan.Reductions {
			if _, err := s.appendRecord(furl.Furl, red); err != nil {
				return nil, fmt.Errorf("record a plan: %w", err)
			}
		}
		fit = s.newFit(in, asked.budget, asked.plan, asked.counted)
	case in.DryRun:
		fit, err = s.planDryRun(ctx, in)
	default:
		fit, err = s.planWithReady(ctx, in, asked)
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
func (s *Session) planWithReady(ctx context.Context, in transact.Prompt, asked *modelPlan) (*Fit, error) {
	b, v, counted := s.budgetFor(in)
	before := b.Size
	var summary *furl.Reduction
	var err error
	if asked != nil {
		if summary, err = s.recordPlannedSummary(asked.plan, b); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		b = b.After(v, s.log.State().View(b.Model))
	}
	plan, err := s.runPolicy(ctx, in, b)
	if err != nil {
		return nil, err
	}
	if summary == nil {
		before = plan.Before
		if summary, err = s.recordReadySummary(in, b, plan); err != nil {
			return nil, err
		}
		if summary != nil {
			b = b.After(v, s.log.State().View(b.Model))
			if plan, err = s.runPolicy(ctx, in, b); err != nil {
				return nil, err
			}
		}
	}
	plan = s.skippedWaiting(plan, &b)
	for _, red := range plan.Reductions {
		if _, err := s.appendRecord(furl.Furl, red); err != nil {
			return nil, fmt.Errorf("record a plan: %w", err)
		}
	}
	if summary != nil {
		plan = withReduction(plan, summary, before)
	}
	return s.newFit(in, b, plan, counted), nil
}

// runPolicy plans by the session's policy without asking a model.
func (s *Session) runPolicy(ctx context.Context, in transact.Prompt, b furl.Budget) (*furl.Plan, error) {
	p, err := s.policyWithoutModel(in)
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	return plan, nil
}

// policyWithoutModel returns the policy of a request without its summarizer.
func (s *Session) policyWithoutModel(in transact.Prompt) (furl.Policy, error) {
	set := s.policySettings()
	if in.Adjust != nil {
		set = in.Adjust(set)
	} else if set.Summarizer == nil && in.Policy == "" {
		return s.sessionPolicy()
	}
	set.Summarizer = nil
	return s.policyWith(in, set)
}

// policyFor returns the policy of a request.
func (s *Session) policyFor(in transact.Prompt) (furl.Policy, error) {
	set := s.policySettings()
	switch {
	case in.Adjust != nil:
		set = in.Adjust(set)
	case in.Policy == "":
		return s.sessionPolicy()
	}
	return s.policyWith(in, set)
}

// policyWith returns the policy of a request with other settings.
func (s *Session) policyWith(in transact.Prompt, set policy.Settings) (furl.Policy, error) {
	live := s.all.live()
	p, err := live.Policies.Policy(cmp.Or(in.Policy, s.policyName()), set)
	if err != nil {
		p, err = live.Policies.Policy(live.Policy, set)
	}
	return p, err
}

// recordPlannedSummary records the summary of an outdated plan if it still applies to the
// session. It returns the reduction, nil if it recorded none.
func (s *Session) recordPlannedSummary(plan *furl.Plan, b furl.Budget) (*furl.Reduction, error) {
	for _, red := range plan.Reductions {
		if red.Summary == nil || red.Summary.Request == "" {
			continue
		}
		red, err := policy.Commit(s.log.State(), b, red)
		if err == nil {
			_, err = s.appendRecord(furl.Furl, red)
		}
		if err == nil {
			return red, nil
		}
		s.all.log.Info("summary discarded: it came too late", "session", s.key.Session, "error", err)
	}
	return nil, nil
}

// newFit returns the fit for the head after a plan.
func (s *Session) newFit(in transact.Prompt, b furl.Budget, plan *furl.Plan, counted preambleSize) *Fit {
	// The plan's own view is not used: it has expected record numbers of the
	// reductions, which differ after a rewind.
	v := s.log.State().View(b.Model)
	f := &Fit{
		Model: in.Model, View: v, Plan: plan, Budget: b, Head: s.log.Head(), At: b.Now,
		preamble: in.Digest, counted: counted, UnknownTypes: unknownTypesOf(s.log.State()),
		HourCache: s.wantsHourCache(in, &b, v),
	}
	if b.Model.Thinking.Binds {
		f.prefix, f.thinking = v.Prefix(), v.LastThinking
	}
	if b.Window == 0 {
		s.all.warnUnknownWindow(in.Model)
	}
	f.Assumed = s.warnAssumed(in.Model, &b.Model)
	for _, w := range plan.Warnings {
		if s.warned[w.Code] {
			continue // logged before
		}
		if s.warned == nil {
			s.warned = make(map[string]bool)
		}
		s.warned[w.Code] = true
		s.all.log.Warn(w.Text, "session", s.key.Session, "code", w.Code)
	}
	return f
}

// Observe records the result of a request: an exchange with its usage, and the
// messages of the reply. If the head has changed since the request, it rewinds to
// the head that the request was sent for. If the log has the reply already, because
// another process was faster with the client's next request, only the exchange is
// recorded, and the conversation continues where it was. When Observe returns, the records survive
// the end of the process, but not always a power loss (storage.EarlyAppender).
func (s *Session) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	if reply == nil {
		return errors.New("observe reply: reply is nil")
	}
	return s.update(ctx, committed, func() error {
		_, err := s.observe(ctx, sent, reply)
		return err
	})
}

// observe appends an exchange and the messages of its reply. It returns false if
// they are recorded already.
func (s *Session) observe(ctx context.Context, sent *Fit, reply *protocol.Reply) (fresh bool, err error) {
	if s.alreadyObserved(sent.Head, reply) {
		return false, nil
	}
	head, hasReply := s.log.Head(), s.hasReplyOfClient(sent.Head, reply)
	if head != sent.Head {
		r, err := s.log.Rewind(sent.Head, s.now(), furl.Upstream)
		if err != nil {
			return false, err
		}
		if r.Parent != sent.Head {
			return false, fmt.Errorf("observe reply: the request ends at record %d, inside a step: %w", sent.Head, furl.ErrNotOnPath)
		}
	}
	sent.Account = s.account(sent, reply)
	hidden := 0
	if sent.View != nil && hasReductions(s.log.State()) {
		hidden = hiddenOriginals(s.log.State(), sent.View, &sent.Budget)
	}
	if err := s.recordExchange(ctx, sent, reply); err != nil {
		return false, err
	}
	if hasReply {
		if err := s.returnTo(head); err != nil {
			return false, err
		}
	} else {
		c := s.all.counter(&sent.Budget.Model)
		for _, m := range reply.Messages {
			if _, err := s.appendMessage(m, c); err != nil {
				return false, err
			}
		}
	}
	m := (&tx{s}).Meta().Clone()
	m.RecordAnswered(sent.Model, (&furl.Exchange{Model: sent.Model, Usage: reply.Usage, Passes: reply.Passes}).LargestPrompt())
	m.Model, m.Window, m.ToolShare = sent.Model, s.plannedWindow(sent.Model), sent.counted.tools
	if m.Format == "" {
		m.Format = reply.Format
	}
	s.addToLedger(&m, sent, hidden)
	s.newMeta = &m
	return true, nil
}

// exchangeOf returns the exchange of a fit, without the bodies of its request.
func exchangeOf(sent *Fit, reply *protocol.Reply) *furl.Exchange {
	ex := &furl.Exchange{
		Model: sent.Model, Preamble: sent.preamble, View: sent.prefix, Thinking: sent.thinking,
		Usage: price.Billed(&sent.Budget.Model, reply.Usage), Passes: reply.Passes, ResponseID: reply.ID, Stop: reply.Stop,
		Plan: sent.PlanSteps(), Estimated: sent.size(),
	}
	if reply.Complete && ex.Stop == "" {
		ex.Stop = furl.StopUnstated
	}
	return ex
}

// recordExchange records the exchange of a fit.
func (s *Session) recordExchange(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	ex := exchangeOf(sent, reply)
	s.describeRequest(ctx, ex, sent)
	s.sizes.update(s.log, s.models())
	r, err := s.log.Append(s.log.Head(), sent.At, furl.Furl, ex)
	if err != nil {
		return err
	}
	s.sizes.recordAppended(r, s.log, s.models())
	s.sizes.preamble = sent.counted.Part
	s.all.recordAccepted(sent.Model, ex.LargestPrompt())
	return nil
}

// alreadyObserved reports whether the exchange of a reply is already recorded after a
// record.
func (s *Session) alreadyObserved(after furl.Seq, reply *protocol.Reply) bool {
	if reply.ID == "" {
		return false
	}
	for _, r := range s.log.Records(after) {
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

// preambleSize is the size of a preamble, and the share of tools in it, from 0 to 1.
type preambleSize struct {
	token.Part
	tools float64
}

// preambleSize returns the size of a request's preamble. Sizes are cached, because clients
// send the same long preamble with every request.
func (a *shared) preambleSize(in transact.Prompt, c furl.Counter) preambleSize {
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
		a.preambles = make(map[preambleKey]preambleSize)
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
func countPreamble(preamble []furl.Block, c furl.Counter) preambleSize {
	if len(preamble) == 0 {
		return preambleSize{}
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
	p := preambleSize{Part: token.PartOf(m.Blocks)}
	if all > 0 {
		p.tools = math.Round(1000*float64(tools)/float64(all)) / 1000
	}
	return p
}

// preambleDigest returns a digest of a preamble.
func preambleDigest(preamble []furl.Block) furl.Digest {
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
