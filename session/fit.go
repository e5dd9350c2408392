package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/wire"
)

// Fit is what is sent to a model: the view after a plan was made and recorded.
// Hand it back with the reply (Session.Observe), so that the next one knows
// what this one cost.
type Fit struct {
	// Model is the name that requests give it.
	Model string
	// View is what the model sees. It is for reading: what asks it for
	// spans or for its state must do so before anything else is done with
	// the session.
	View *furl.View
	// Plan is what the policy decided, and Budget what it had to go by.
	Plan   *furl.Plan
	Budget furl.Budget
	// Head is the record whose view this is.
	Head furl.Seq
	// At is when the plan was made.
	At time.Time
	// Dry says that the plan was made for a dry run: it is not recorded, and
	// View is what was sent without it.
	Dry bool
	// Unbound is Prompt.Unbound.
	Unbound bool
	// Received is the request as the client sent it, and Sent the body that was sent
	// in its place. If they are set, Observe records how to rebuild both; see
	// Session.RequestBody.
	Received *protocol.Request
	Sent     []byte
	// Account is what the request cost, once its reply was observed; nil
	// before that.
	Account *Account

	sent     int // size of a dry run's View where more is hidden without one; 0: Plan.Before
	preamble furl.Digest
	counted  preambleSize
	prefix   furl.Digest
	thinking furl.Pos
}

// Encode gives the view as the elements of a request's list in a wire format:
// messages of Anthropic or Chat Completions, items of Responses.
func (f *Fit) Encode(format furl.Format) ([]json.RawMessage, error) {
	api := wire.For(format)
	if api == nil {
		return nil, fmt.Errorf("no wire format %q", format)
	}
	return api.EncodeView(f.View)
}

// View is what a model would see now, without a plan. The name is as requests
// give it. What is said of Fit.View holds for it.
func (s *Session) View(model string) *furl.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.State().View(s.model(model))
}

// Fit makes the session fit a model's window by its policy: it plans, records
// what is to be hidden, and gives the view. The preamble is what will be sent
// beside the messages; see Prompt.
//
// If the policy asks a model for a summary, the session can be used while that
// is written. A summary that no longer fits what happened in the meantime is
// given up, and the view is that of what is there.
func (s *Session) Fit(ctx context.Context, model string, preamble ...furl.Block) (*Fit, error) {
	in := Prompt{Model: model, Preamble: preamble, Digest: digestOf(preamble)}
	d, err := s.Prepare(ctx, Preparation{Prompt: func(*Tx) Prompt { return in }})
	if err != nil {
		return nil, err
	}
	if err := s.commitDraft(ctx, onDisk, d); err != nil {
		return nil, err
	}
	return d.fit, nil
}

// budgetFor makes the budget of a request for the session's head.
func (s *Session) budgetFor(in Prompt) (furl.Budget, *furl.View, preambleSize) {
	m := s.model(in.Model)
	if in.Window > 0 && (m.Window == 0 || in.Window < m.Window) {
		m.Window = in.Window
	}
	counter := s.all.counter(&m)
	counted := s.all.partOf(in, counter)
	s.sizes.follow(s.log, s.all)
	v := s.log.State().View(m)
	b := policy.NewBudget(m, 0)
	if in.MaxTokens > 0 && in.MaxTokens < b.Reserve || s.all.outputCounts(in.Model) && in.MaxTokens > b.Reserve {
		b.Reserve = in.MaxTokens
	}
	b.Counter, b.Recall = counter, s.all.live().Recall || s.meta.Settings[SettingRecall] != "" || s.newMeta != nil && s.newMeta.Settings[SettingRecall] != ""
	b.Force = in.force || in.Refused != nil
	b = s.sizes.budget(v, in.Model, b, counted.Part, partOfTail(in.Tail, counter))
	if in.Refused != nil && in.Refused.Tokens > b.Size {
		b.Size = in.Refused.Tokens
	}
	b.Now = in.now
	if b.Now.IsZero() {
		b.Now = s.all.o.Now()
	}
	if l := s.sizes.last; l != nil && !l.Preamble.IsZero() && !in.Digest.IsZero() && l.Preamble != in.Digest {
		b.Cold = true
	}
	return b, v, counted
}

// fit is the one plan step of a session: it plans for the head, and appends what
// is to be hidden. No model is asked for a summary; what a policy that asked one
// has planned is given. The session is locked.
func (s *Session) fit(ctx context.Context, in Prompt, asked *asked) (fit *Fit, err error) {
	switch {
	case asked != nil && !asked.late:
		for _, red := range asked.plan.Reductions {
			if _, err := s.add(furl.Furl, red); err != nil {
				return nil, fmt.Errorf("record a plan: %w", err)
			}
		}
		fit = s.fitted(in, asked.budget, asked.plan, asked.counted)
	case in.DryRun:
		fit, err = s.fitDry(ctx, in)
	default:
		fit, err = s.fitNow(ctx, in, asked)
	}
	if err != nil {
		return nil, err
	}
	if o := in.Refused; o != nil {
		fit.Plan.Steps = slices.Insert(fit.Plan.Steps, 0, furl.PlanStep{
			Stage: event.StageOverflow, Skipped: "the provider refused the prompt as too long", Before: o.Tokens, After: o.Limit,
		})
	}
	return fit, nil
}

// fitNow plans without asking any model. A summary that is ready, or was written
// while the session changed, is recorded first if it still holds; the plan is then
// made with it.
func (s *Session) fitNow(ctx context.Context, in Prompt, asked *asked) (*Fit, error) {
	b, v, counted := s.budgetFor(in)
	before := b.Size
	var summary *furl.Reduction
	var err error
	if asked != nil {
		if summary, err = s.takeSummary(asked.plan, b); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		b = b.After(v, s.log.State().View(b.Model))
	}
	plan, err := s.planNow(ctx, b)
	if err != nil {
		return nil, err
	}
	if summary == nil {
		before = plan.Before
		if summary, err = s.settleSummary(in, b, plan); err != nil {
			return nil, err
		}
		if summary != nil {
			b = b.After(v, s.log.State().View(b.Model))
			if plan, err = s.planNow(ctx, b); err != nil {
				return nil, err
			}
		}
	}
	for _, red := range plan.Reductions {
		if _, err := s.add(furl.Furl, red); err != nil {
			return nil, fmt.Errorf("record a plan: %w", err)
		}
	}
	if summary != nil {
		plan = withSummary(plan, summary, before)
	}
	return s.fitted(in, b, plan, counted), nil
}

// planNow plans by the session's policy without asking any model.
func (s *Session) planNow(ctx context.Context, b furl.Budget) (*furl.Plan, error) {
	p, err := s.plansWithoutModel()
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	return plan, nil
}

// plansWithoutModel gives the session's policy as one that asks no model.
func (s *Session) plansWithoutModel() (furl.Policy, error) {
	set := s.policySettings()
	if set.Summarizer == nil {
		return s.plans()
	}
	set.Summarizer = nil
	live := s.all.live()
	p, err := live.Policies.Policy(s.policyName(), set)
	if err != nil {
		p, err = live.Policies.Policy(live.Policy, set)
	}
	return p, err
}

// takeSummary records the summary of a plan for a session that has changed since,
// if it still holds. It returns what it recorded, nil for nothing.
func (s *Session) takeSummary(plan *furl.Plan, b furl.Budget) (*furl.Reduction, error) {
	for _, red := range plan.Reductions {
		if red.Summary == nil || red.Summary.Request == "" {
			continue
		}
		red, err := policy.Commit(s.log.State(), b, red)
		if err == nil {
			_, err = s.add(furl.Furl, red)
		}
		if err == nil {
			return red, nil
		}
		s.all.log.Info("a summary came too late", "session", s.key.Session, "error", err)
	}
	return nil, nil
}

// fitted gives the view of the head after a plan.
func (s *Session) fitted(in Prompt, b furl.Budget, plan *furl.Plan, counted preambleSize) *Fit {
	// Not the plan's own view: it names reductions by the numbers they were
	// to have, which are others right after a rewind.
	v := s.log.State().View(b.Model)
	f := &Fit{
		Model: in.Model, View: v, Plan: plan, Budget: b, Head: s.log.Head(), At: b.Now,
		preamble: in.Digest, counted: counted,
	}
	if b.Model.Thinking.Binds {
		f.prefix, f.thinking = v.Prefix(), v.LastThinking
	}
	if b.Window == 0 {
		s.all.unknownWindow(in.Model)
	}
	for _, w := range plan.Warnings {
		if s.warned[w.Code] {
			continue // each request's plan has it
		}
		if s.warned == nil {
			s.warned = make(map[string]bool)
		}
		s.warned[w.Code] = true
		s.all.log.Warn(w.Text, "session", s.key.Session, "code", w.Code)
	}
	return f
}

// Observe records what came of a request: an exchange with its usage, and the
// messages of the reply. If the session has gone on elsewhere in the meantime,
// it goes on from what was sent. When it returns, what was recorded outlives the
// process; a store that waits for its disk goes on doing so.
func (s *Session) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	if reply == nil {
		return errors.New("observe a reply: there is none")
	}
	return s.update(ctx, committed, func() error {
		_, err := s.observe(ctx, sent, reply)
		return err
	})
}

// observe appends an exchange and the messages of its reply, and reports whether
// they were not recorded before.
func (s *Session) observe(ctx context.Context, sent *Fit, reply *protocol.Reply) (fresh bool, err error) {
	if s.follows(sent.Head, reply) {
		return false, nil
	}
	if s.log.Head() != sent.Head {
		r, err := s.log.Rewind(sent.Head, s.all.o.Now(), furl.Upstream)
		if err != nil {
			return false, err
		}
		if r.Parent != sent.Head {
			return false, fmt.Errorf("observe a reply: what was sent ends at record %d, within a step: %w", sent.Head, furl.ErrNotOnPath)
		}
	}
	sent.Account = s.account(sent, reply)
	if err := s.exchange(ctx, sent, reply); err != nil {
		return false, err
	}
	c := s.all.counter(&sent.Budget.Model)
	for _, m := range reply.Messages {
		if _, err := s.addMessage(m, c); err != nil {
			return false, err
		}
	}
	if window := s.plannedFor(sent.Model); s.meta.Model != sent.Model || s.meta.Format == "" || s.meta.Window != window || s.meta.ToolShare != sent.counted.tools {
		m := cloneMeta(s.meta)
		m.Model, m.Window, m.ToolShare = sent.Model, window, sent.counted.tools
		if m.Format == "" {
			m.Format = reply.Format
		}
		s.newMeta = &m
	}
	return true, nil
}

// exchange records the exchange of a fit.
func (s *Session) exchange(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	ex := &furl.Exchange{
		Model: sent.Model, Preamble: sent.preamble, View: sent.prefix, Thinking: sent.thinking,
		Usage: reply.Usage, ResponseID: reply.ID, Stop: reply.Stop,
		Plan: sent.steps(), Estimated: sent.size(),
	}
	s.describeRequest(ctx, ex, sent)
	s.sizes.follow(s.log, s.all)
	r, err := s.log.Append(s.log.Head(), sent.At, furl.Furl, ex)
	if err != nil {
		return err
	}
	s.sizes.added(r, s.log, s.all)
	s.sizes.preamble = sent.counted.Part
	s.all.accepted(sent.Model, reply.Usage.Prompt())
	return nil
}

// follows reports whether the exchange that a reply belongs to is recorded
// already after a record.
func (s *Session) follows(after furl.Seq, reply *protocol.Reply) bool {
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

// preambleKey tells preambles apart, and by whose rules they are counted.
type preambleKey struct {
	digest furl.Digest
	model  string
}

// maxPreambles bounds how many sizes of preambles are remembered.
const maxPreambles = 1000

// preambleSize is what was counted of a preamble, and which share of it are
// tools, from 0 to 1.
type preambleSize struct {
	token.Part
	tools float64
}

// partOf counts the preamble of a request, each once: clients send the same
// with every request, and it is long.
func (a *shared) partOf(in Prompt, c furl.Counter) preambleSize {
	if in.Digest.IsZero() {
		return sizeOf(in.Preamble, c)
	}
	key := preambleKey{in.Digest, in.Model}
	a.mu.Lock()
	p, ok := a.preambles[key]
	a.mu.Unlock()
	if ok {
		return p
	}
	p = sizeOf(in.Preamble, c)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.preambles == nil || len(a.preambles) >= maxPreambles {
		a.preambles = make(map[preambleKey]preambleSize)
	}
	a.preambles[key] = p
	return p
}

// sizeOf counts a preamble.
func sizeOf(preamble []furl.Block, c furl.Counter) preambleSize {
	if len(preamble) == 0 {
		return preambleSize{}
	}
	m := furl.Message{Blocks: append([]furl.Block(nil), preamble...)}
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

// digestOf tells preambles apart.
func digestOf(preamble []furl.Block) furl.Digest {
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
