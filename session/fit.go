package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/furlhq/furl"
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
	// Account is what the request cost, once its reply was observed; nil
	// before that.
	Account *Account

	sent     int // size of a dry run's View where more is hidden without one; 0: Plan.Before
	preamble furl.Digest
	counted  preambleSize
	prefix   furl.Digest
	thinking furl.Pos
	bodies   *bodies // of the request, nil if they are not recorded
}

// Encode gives the view as the elements of a request's list in a wire format:
// messages of Anthropic or Chat Completions, items of Responses.
func (f *Fit) Encode(format furl.Format) ([]json.RawMessage, error) {
	return Encode(f.View, format)
}

// Encode gives a view as the elements of a request's list in a wire format.
func Encode(v *furl.View, format furl.Format) ([]json.RawMessage, error) {
	api := wire.For(format)
	if api == nil {
		return nil, fmt.Errorf("no wire format %q", format)
	}
	return api.EncodeView(v)
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
// beside the messages, instructions as text blocks and each tool as an opaque
// one with its JSON as the text; it counts, and is never reduced.
//
// If the policy asks a model for a summary, the session can be used while that
// is written. A summary that no longer fits what happened in the meantime is
// given up, and the view is that of what is there.
func (s *Session) Fit(ctx context.Context, model string, preamble ...furl.Block) (*Fit, error) {
	in := fitIn{name: model, preamble: preamble, digest: digestOf(preamble)}
	if s.all.live().Settings.Summarizer != nil {
		return s.fitAsking(ctx, in)
	}
	var fit *Fit
	err := s.update(ctx, onDisk, func() (err error) {
		fit, err = s.fit(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return fit, nil
}

// fitIn is what a request brings along beside the session's messages.
type fitIn struct {
	name     string
	preamble []furl.Block
	digest   furl.Digest // of the preamble
	extra    token.Part  // sent and not in the view
	maxOut   int         // requested output; 0: not given
	force    bool        // the provider has just refused the prompt
	limit    int         // the window, as the provider has just said; 0: it did not
	size     int         // of the prompt, as it has just said; 0: it did not
	now      time.Time   // zero: the clock's
}

// budgetFor makes the budget of a request for the session's head.
func (s *Session) budgetFor(in fitIn) (furl.Budget, *furl.View, preambleSize) {
	m := s.model(in.name)
	if in.limit > 0 && (m.Window == 0 || in.limit < m.Window) {
		m.Window = in.limit
	}
	counter := s.all.counter(&m)
	counted := s.all.partOf(in, counter)
	s.sizes.follow(s.log, s.all)
	v := s.log.State().View(m)
	b := NewBudget(m, 0)
	if in.maxOut > 0 && in.maxOut < b.Reserve || s.all.outputCounts(in.name) && in.maxOut > b.Reserve {
		b.Reserve = in.maxOut
	}
	b.Counter, b.Recall, b.Force = counter, s.all.live().Recall || s.recallTools() != "", in.force
	b = s.sizes.budget(v, in.name, b, counted.Part, in.extra)
	if in.size > b.Size {
		b.Size = in.size
	}
	b.Now = in.now
	if b.Now.IsZero() {
		b.Now = s.all.o.Now()
	}
	if l := s.sizes.last; l != nil && !l.Preamble.IsZero() && !in.digest.IsZero() && l.Preamble != in.digest {
		b.Cold = true
	}
	return b, v, counted
}

// fit plans and records. The session is locked, and the change is stored by
// whoever called.
func (s *Session) fit(ctx context.Context, in fitIn) (*Fit, error) {
	p, err := s.plans()
	if err != nil {
		return nil, err
	}
	b, v, counted := s.budgetFor(in)
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	before := plan.Before
	settled, err := s.settleSummary(in, b, plan)
	if err != nil {
		return nil, err
	}
	if settled != nil {
		b = b.After(v, s.log.State().View(b.Model))
		if plan, err = p.Plan(ctx, s.log.State(), b); err != nil {
			return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
		}
	}
	for _, red := range plan.Reductions {
		if _, err := s.add(furl.Furl, red); err != nil {
			return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
		}
	}
	if settled != nil {
		plan = withSummary(plan, settled, before)
	}
	return s.fitted(in, b, plan, counted), nil
}

// fitQuietly is fit without asking any model.
func (s *Session) fitQuietly(ctx context.Context, in fitIn) (fit *Fit, err error) {
	err = s.withoutModel(func() error {
		fit, err = s.fit(ctx, in)
		return err
	})
	return fit, err
}

// withoutModel calls f while the session's policy is one that asks no model.
func (s *Session) withoutModel(f func() error) error {
	set := s.policySettings()
	if set.Summarizer == nil {
		return f()
	}
	set.Summarizer = nil
	live := s.all.live()
	p, err := live.Policies.Policy(s.policyName(), set)
	if err != nil {
		if p, err = live.Policies.Policy(live.Policy, set); err != nil {
			return err
		}
	}
	was, made := s.policy, s.made
	s.policy, s.made = p, live
	defer func() { s.policy, s.made = was, made }()
	return f()
}

// errMoved says that the session is not what a plan was made for.
var errMoved = errors.New("the session has gone on elsewhere")

// fitted gives the view of the head after a plan.
func (s *Session) fitted(in fitIn, b furl.Budget, plan *furl.Plan, counted preambleSize) *Fit {
	// Not the plan's own view: it names reductions by the numbers they were
	// to have, which are others right after a rewind.
	v := s.log.State().View(b.Model)
	f := &Fit{
		Model: in.name, View: v, Plan: plan, Budget: b, Head: s.log.Head(), At: b.Now,
		preamble: in.digest, counted: counted,
	}
	if b.Model.Thinking.Binds {
		f.prefix, f.thinking = v.Prefix(), v.LastThinking()
	}
	if b.Window == 0 {
		s.all.unknownWindow(in.name)
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

// fitAsking is Fit for policies that may ask a model: they plan on a state of
// their own.
func (s *Session) fitAsking(ctx context.Context, in fitIn) (*Fit, error) {
	s.mu.Lock()
	p, err := s.plans()
	var state *furl.State
	var b furl.Budget
	var counted preambleSize
	base := s.log.Head()
	if err == nil {
		b, _, counted = s.budgetFor(in)
		state, err = furl.Fold(s.log, base)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan(ctx, state, b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	var fit *Fit
	err = s.update(ctx, onDisk, func() error {
		late := s.log.Head() != base
		if late {
			b, _, counted = s.budgetFor(in)
		}
		for _, red := range plan.Reductions {
			if err := s.take(red, b, late); err != nil {
				return err
			}
		}
		fit = s.fitted(in, b, plan, counted)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fit, nil
}

// take records a planned reduction. If the session has changed since, only a
// summary is, and only where it still holds.
func (s *Session) take(red *furl.Reduction, b furl.Budget, late bool) error {
	if !late {
		_, err := s.add(furl.Furl, red)
		return err
	}
	if red.Summary == nil || red.Summary.Request == "" {
		return nil
	}
	red, err := policy.Commit(s.log.State(), b, red)
	if err == nil {
		_, err = s.add(furl.Furl, red)
	}
	if err != nil {
		s.all.log.Info("a summary came too late", "session", s.key.Session, "error", err)
	}
	return nil
}

// Observe records what came of a request: an exchange with its usage, and the
// messages of the reply. If the session has gone on elsewhere in the meantime,
// it goes on from what was sent. When it returns, what was recorded outlives the
// process; a store that waits for its disk goes on doing so.
func (s *Session) Observe(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	if reply == nil {
		return errors.New("observe a reply: there is none")
	}
	return s.observe(ctx, sent, reply, nil)
}

// observe is Observe, and then, if it is not nil, does what follows from the
// reply.
func (s *Session) observe(ctx context.Context, sent *Fit, reply *protocol.Reply, then func() error) error {
	defer func() { sent.bodies = nil }() // they share the request's memory
	return s.update(ctx, committed, func() error {
		if s.follows(sent.Head, reply) {
			return nil // it was observed before
		}
		if s.log.Head() != sent.Head {
			r, err := s.log.Rewind(sent.Head, s.all.o.Now(), furl.Upstream)
			if err != nil {
				return err
			}
			if r.Parent != sent.Head {
				return fmt.Errorf("observe a reply: what was sent ends at record %d, within a step: %w", sent.Head, furl.ErrNotOnPath)
			}
		}
		sent.Account = s.account(sent, reply)
		if err := s.exchange(ctx, sent, reply); err != nil {
			return err
		}
		c := s.all.counter(&sent.Budget.Model)
		for _, m := range reply.Messages {
			if _, err := s.addMessage(m, c); err != nil {
				return err
			}
		}
		if then != nil {
			if err := then(); err != nil {
				return err
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
		return nil
	})
}

// exchange records the exchange of a fit.
func (s *Session) exchange(ctx context.Context, sent *Fit, reply *protocol.Reply) error {
	ex := &furl.Exchange{
		Model: sent.Model, Preamble: sent.preamble, View: sent.prefix, Thinking: sent.thinking,
		Usage: reply.Usage, ResponseID: reply.ID, Stop: reply.Stop,
		Plan: sent.steps(), Estimated: sent.size(),
	}
	s.describeRequest(ctx, ex, sent.bodies)
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
func (a *shared) partOf(in fitIn, c furl.Counter) preambleSize {
	if in.digest.IsZero() {
		return sizeOf(in.preamble, c)
	}
	key := preambleKey{in.digest, in.name}
	a.mu.Lock()
	p, ok := a.preambles[key]
	a.mu.Unlock()
	if ok {
		return p
	}
	p = sizeOf(in.preamble, c)
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

// ViewModel is what View and Fit take a model to be under the name that
// requests give it: as the catalogue has it, with the session's own limit.
func (s *Session) ViewModel(name string) furl.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model(name)
}
