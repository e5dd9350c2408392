package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// At is the span of one block.
func At(p furl.Pos) furl.Span { return furl.Span{First: p, Last: p} }

// Rewound says what a rewind did.
type Rewound struct {
	// To is the record that the conversation goes on from: the one asked for,
	// or the last before it that ends a step; 0: it starts anew.
	To furl.Seq `json:"to"`
	// Branch is where the conversation stood before: rewinding to it goes
	// back.
	Branch furl.Seq `json:"branch"`
	// Messages are how many of the path are left.
	Messages int `json:"messages"`
}

// Rewind makes the conversation go on from an earlier record, or from the last
// one before it that ends a step, and says where. What was hidden after it is
// visible again; what came after stays in the log, on a branch. A record that
// there is not is an error wrapping furl.ErrNotOnPath.
func (s *Session) Rewind(ctx context.Context, to furl.Seq) (Rewound, error) {
	var out Rewound
	err := s.change(ctx, func() error {
		from := s.log.Head()
		r, err := s.log.Rewind(to, s.all.o.Now(), furl.Person)
		if err != nil {
			return err
		}
		out = Rewound{To: r.Parent, Branch: from, Messages: s.log.State().Len()}
		return nil
	})
	return out, err
}

// Restored says what a restoration did.
type Restored struct {
	// Record is the restoration's own; 0 if it was only tried.
	Record furl.Seq `json:"record"`
	// Tokens is the size of what is shown as recorded again, in the
	// provider's tokens.
	Tokens int `json:"tokens"`
	// Before and After are the sizes of the view, as counted.
	Before int `json:"view_before"`
	After  int `json:"view_after"`
	// Covered lists other reductions that still show something in place of
	// what was lifted: nothing visible changes there while they do.
	Covered []furl.Seq `json:"covered_by,omitempty"`
}

// Lift takes one reduction back and keeps all that came after it. What it hid
// is shown, or what lies beneath it, and is kept from then on. A reduction that
// is not on the path is an error wrapping furl.ErrNotOnPath.
func (s *Session) Lift(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, false)
}

// PreviewLift tells what Lift would do.
func (s *Session) PreviewLift(ctx context.Context, reduction furl.Seq) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Of: reduction}, true)
}

// Restore shows the originals of blocks through everything that hides them,
// whole steps where a mark hid them, and keeps them from then on.
func (s *Session) Restore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, false)
}

// PreviewRestore tells what Restore would do.
func (s *Session) PreviewRestore(ctx context.Context, spans ...furl.Span) (Restored, error) {
	return s.restore(ctx, &furl.Restoration{Open: true, Spans: spans}, true)
}

// Pin keeps blocks from being hidden, whatever happens.
func (s *Session) Pin(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Pin}, false)
	return err
}

// Keep has blocks hidden only when the window cannot be kept to otherwise.
func (s *Session) Keep(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Keep}, false)
	return err
}

// Release takes back that blocks were kept or pinned.
func (s *Session) Release(ctx context.Context, spans ...furl.Span) error {
	_, err := s.restore(ctx, &furl.Restoration{Spans: spans, Hold: furl.Release}, false)
	return err
}

func (s *Session) restore(ctx context.Context, res *furl.Restoration, try bool) (Restored, error) {
	var out Restored
	f := func() error {
		st := s.log.State()
		m := s.model(s.meta.Model)
		out = Restored{Before: st.View(m).Tokens}
		r := furl.Record{Seq: furl.Seq(s.log.Len() + 1), Parent: s.log.Head(), Body: res}
		for _, e := range furl.Events(st, r, m.Window) {
			if e, ok := e.(furl.Restored); ok {
				out.Tokens = e.Tokens
			}
		}
		after := st
		if try {
			var err error
			if after, err = furl.Fold(s.log, s.log.Head()); err != nil {
				return err
			}
			if err := after.Apply(r); err != nil {
				return err
			}
		} else {
			rec, err := s.add(furl.Person, res)
			if err != nil {
				return err
			}
			out.Record, after = rec.Seq, s.log.State()
		}
		out.After = after.View(m).Tokens
		if res.Of != 0 {
			out.Covered = after.Covering(res.Of)
		}
		return nil
	}
	if try {
		s.mu.Lock()
		defer s.mu.Unlock()
		return out, f()
	}
	err := s.change(ctx, f)
	return out, err
}

// ReduceOptions say what to hide.
type ReduceOptions struct {
	// Stage is what hides: one of package policy, or one's own.
	Stage policy.Stage
	// Policy is the name of a policy to plan by, if Stage is nil; if that is
	// empty, the session's own. It acts whether or not its trigger is reached.
	Policy string
	// Model is what the view is for. If empty, the session's.
	Model string
	// Preamble counts as in Session.Fit.
	Preamble []furl.Block
}

// Planned is what a reduction hides, frees and costs (X3, X4).
type Planned struct {
	// Record is the reduction's own; 0 if it was only planned.
	Record furl.Seq `json:"reduction_id,omitempty"`
	Stage  string   `json:"stage"`
	Reason string   `json:"reason"`
	// Messages go behind a mark, Blocks show something else in place.
	Messages []furl.Seq `json:"messages,omitempty"`
	Blocks   int        `json:"blocks,omitempty"`
	// Before and After are the sizes of the context, in the provider's tokens.
	Before int       `json:"context_size_before"`
	After  int       `json:"context_size_after"`
	Cost   furl.Cost `json:"cost"`
	// Summary is what would stand for the messages, "" without one.
	Summary string `json:"summary,omitempty"`
}

// Reduction is a plan made by hand.
type Reduction struct {
	Planned []Planned `json:"planned"`
	// Steps tell what each stage did, in order, and why not.
	Steps []furl.PlanStep `json:"-"`
	// Before and After are the sizes of the context.
	Before int `json:"context_size_before"`
	After  int `json:"context_size_after"`
	// Reason says why nothing or not enough was hidden, "" if all is well.
	Reason string `json:"reason,omitempty"`
}

// Preview tells what Reduce would hide, free and cost, and changes nothing.
func (s *Session) Preview(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reduction(ctx, o, false)
}

// Reduce hides something now.
func (s *Session) Reduce(ctx context.Context, o ReduceOptions) (*Reduction, error) {
	var out *Reduction
	err := s.change(ctx, func() (err error) {
		out, err = s.reduction(ctx, o, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Session) reduction(ctx context.Context, o ReduceOptions, record bool) (*Reduction, error) {
	p, err := s.planner(o)
	if err != nil {
		return nil, err
	}
	b, _, _ := s.budgetFor(fitIn{name: cmp.Or(o.Model, s.meta.Model), preamble: o.Preamble, digest: digestOf(o.Preamble), force: o.Stage == nil})
	plan, err := p.Plan(ctx, s.log.State(), b)
	if err != nil {
		return nil, fmt.Errorf("plan by %s: %w", p.Name(), err)
	}
	out := &Reduction{Steps: plan.Steps, Before: plan.Before, After: plan.After, Reason: plan.Reason}
	state := s.log.State()
	for _, red := range plan.Reductions {
		e, err := state.Effect(red)
		if err != nil {
			return nil, err
		}
		pl := Planned{
			Stage: red.Stage, Reason: red.Reason, Messages: e.Messages, Blocks: e.Blocks,
			Before: red.Before, After: red.After, Cost: red.Cost,
		}
		if red.Summary != nil {
			pl.Summary = red.Summary.Text
		}
		if record {
			r, err := s.add(furl.Person, red)
			if err != nil {
				return nil, err
			}
			pl.Record, state = r.Seq, s.log.State()
		} else if state, err = state.With(red); err != nil {
			return nil, err
		}
		out.Planned = append(out.Planned, pl)
	}
	return out, nil
}

// planner is the policy that somebody asks for by hand.
func (s *Session) planner(o ReduceOptions) (furl.Policy, error) {
	switch {
	case o.Stage != nil:
		return &policy.Pipeline{Label: o.Stage.Name(), Stages: []policy.Stage{o.Stage}, NoBackstop: true}, nil
	case o.Policy != "":
		return s.all.o.NewPolicy(o.Policy, s.policyOptions())
	}
	return s.plans()
}

// StageByName gives a stage with its usual numbers: mask, clip, shorten,
// truncate, evict or extract.
func StageByName(name string) (policy.Stage, error) {
	stages := []policy.Stage{&policy.Mask{}, &policy.Clip{}, &policy.Shorten{}, &policy.Truncate{}, &policy.Evict{}, &policy.Extract{}}
	names := make([]string, len(stages))
	for i, st := range stages {
		if names[i] = st.Name(); names[i] == name {
			return st, nil
		}
	}
	slices.Sort(names)
	return nil, fmt.Errorf("no stage %q; there are %s", name, strings.Join(names, ", "))
}

// The states that a recorded reduction may be in.
const (
	Active  = "active"  // some of what it shows is in the view
	Covered = "covered" // others show something in its place
	Lifted  = "lifted"  // it was taken back
)

// Recorded is a reduction on the session's path.
type Recorded struct {
	policy.Reduced
	// State is Active, Covered or Lifted.
	State string     `json:"state"`
	Cost  furl.Cost  `json:"cost"`
	By    furl.Actor `json:"-"`
	// CoveredBy lists the reductions that show something in place of blocks
	// it covers.
	CoveredBy []furl.Seq `json:"covered_by,omitempty"`
	// Copy is the reduction on another branch that it takes over.
	Copy furl.Seq `json:"copy_of,omitempty"`
}

// Reductions lists all reductions on the session's path in order, with their
// sizes, their costs and what became of them.
func (s *Session) Reductions() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.log.State()
	var list []Recorded
	for _, r := range policy.Reductions(st) {
		red, lifted, _ := st.Reduction(r.Seq)
		rec := Recorded{Reduced: r, State: Covered, Cost: red.Cost, By: s.log.At(r.Seq).By, Copy: red.Copy}
		switch {
		case lifted:
			rec.State = Lifted
		case r.Shown:
			rec.State = Active
		}
		if !lifted {
			rec.CoveredBy = st.Covering(r.Seq)
		}
		list = append(list, rec)
	}
	return list
}

// Timeline gives what happened to the context along the path, as every reader
// sees it.
func (s *Session) Timeline() ([]furl.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Timeline(s.log.Head(), s.model(s.meta.Model).Window)
}

// Branch is a conversation that the session holds: the one it is at, or one
// that was left.
type Branch struct {
	// Head is the last record of the branch: rewinding to it switches there.
	Head furl.Seq `json:"head"`
	// From is the record where it leaves the current path.
	From furl.Seq `json:"from"`
	// Messages are how many it has behind From, Total from its root.
	Messages int       `json:"messages"`
	Total    int       `json:"total"`
	Updated  time.Time `json:"updated,omitzero"`
	Current  bool      `json:"current,omitempty"`
	// Words are the beginning of its last message, for people.
	Words string `json:"words,omitempty"`
}

// Branches lists the conversations that the session holds, the current one
// first and then the newest.
func (s *Session) Branches() []Branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.log.Len()
	parent := make([]bool, n+1) // something of the tree stands behind it
	messages := make([]int, n+1)
	onPath := make([]bool, n+1)
	for _, r := range s.log.Records(0) {
		if _, ok := r.Body.(*furl.Head); ok {
			continue
		}
		parent[r.Parent] = true
		messages[r.Seq] = messages[r.Parent]
		if _, ok := r.Body.(*furl.Message); ok {
			messages[r.Seq]++
		}
	}
	head := s.log.Head()
	onPath[0] = true
	for q := head; q != 0; q = s.log.At(q).Parent {
		onPath[q] = true
	}
	list := []Branch{{Head: head, From: head, Total: messages[head], Current: true}}
	for _, r := range s.log.Records(0) {
		_, isHead := r.Body.(*furl.Head)
		if isHead || parent[r.Seq] || r.Seq == head {
			continue
		}
		from := r.Seq
		for !onPath[from] {
			from = s.log.At(from).Parent
		}
		if messages[r.Seq] == messages[from] && !onPath[r.Seq] {
			continue // nothing was said there
		}
		list = append(list, Branch{Head: r.Seq, From: from, Messages: messages[r.Seq] - messages[from], Total: messages[r.Seq]})
	}
	for i := range list {
		list[i].Words, list[i].Updated = s.lastWords(list[i].Head)
	}
	slices.SortStableFunc(list[1:], func(a, b Branch) int { return cmp.Compare(b.Head, a.Head) })
	return list
}

// lastWords gives the beginning of the newest words at or before a record.
func (s *Session) lastWords(seq furl.Seq) (string, time.Time) {
	var at time.Time
	if seq != 0 {
		at = s.log.At(seq).At
	}
	for ; seq != 0; seq = s.log.At(seq).Parent {
		if m, ok := s.log.At(seq).Body.(*furl.Message); ok {
			if t := titleOf(m); t != "" {
				return t, at
			}
		}
	}
	return "", at
}
