package policy

import (
	"github.com/furlhq/furl"
)

// What a candidate is.
const (
	aResult = iota
	aCall
	aThought
	aStep
	aList
)

// candidate is a block, or a whole step, that may be hidden.
type candidate struct {
	unit  *furl.Unit
	at    int              // the unit's, in the view
	block *furl.ShownBlock // nil for a step
	kind  int
	newer int // its age: newer requests with results
	freed int // expected, in counted tokens
	// waited is the sum of the tokens that could have been hidden, for each request
	// for which they could.
	waited int
	// Of a step: lead says that it is the newest, carries that it carries the list
	// of all, spoken that words of the user are newer.
	lead, carries, spoken bool
}

const (
	// standInTokens is what a placeholder takes beside its names, and
	// lineTokens what a step in one line takes.
	standInTokens = 30
	lineTokens    = 25
	// minFreed is the least that hiding something must free.
	minFreed = 20
	// minString is how long a text in a call's input may be and stay, in
	// characters.
	minString = 150
	// smallResult is the size below which a result goes with its step
	// whatever it is: by itself it would not be worth a placeholder.
	smallResult = 60
)

// roomToWait is the window from which the dial's patience holds, in tokens. In a smaller one
// the window soon demands a reduction, and waiting leaves fewer requests for it to pay.
const roomToWait = 100_000

func (a *auto) patience(b *furl.Budget) float64 {
	if b.Window > 0 && b.Window < roomToWait {
		return min(1, a.dial.patience)
	}
	return a.dial.patience
}

// mustSave is how many times the cost of the rewrite a reduction must be expected to save: the
// session may end before, and then it has cost more than nothing.
const mustSave = 3

// plan picks what to hide, from the newest back. All candidates from one block
// on are hidden; the block is chosen so that most is expected to be saved,
// among those where it is time: what waiting has cost so far exceeds what
// rewriting costs now. docs/internals/cost-model.md derives the rule.
func (a *auto) plan(v *furl.View, b furl.Budget, e economy) ([]candidate, error) {
	var (
		found        []candidate
		tail, freed  int     // counted tokens from here on: shown, and freed
		regret, gain float64 // in tokens of fresh input
		worth        float64 // of hiding all found, likewise
		until        int     // found[:until] are picked
	)
	newSearch(a, v, b, e).each(func(shown int, c *candidate) {
		tail += shown
		if c == nil {
			return
		}
		found = append(found, *c)
		freed += c.freed
		regret += e.read * float64(c.waited)
		rewrite, saved := e.edit(tail, freed)
		worth = saved - rewrite
		// A step alone is not folded: the one before it must be picked too.
		if due := e.cold || regret >= e.patience()*a.patience(&b)*rewrite && saved >= mustSave*rewrite; due && worth > gain && !c.lead {
			until, gain = len(found), worth
		}
	})
	enough := b.Of(freed, 0) >= part(b.Window, forcedGain) && b.Size-b.Of(freed, 0) <= b.Room() && (worth >= 0 || e.all)
	switch {
	case e.forced && enough, e.all && len(found) > 0 && (b.Force || Over(v, b) != ""):
		return found, nil
	case e.all:
		return nil, Nothing
	case e.forced: // what would stay longer must go too
		e.all = true
		if more, err := a.plan(v, b, e); err == nil {
			return more, nil
		}
	}
	if e.price == 0 || until == 0 { // without a price only the window counts
		return nil, Nothing
	}
	return found[:until], nil
}

// search goes over a view from its newest block back.
type search struct {
	a     *auto
	v     *furl.View
	b     furl.Budget
	e     economy
	files *files
	fails *failures
	newer int  // newer requests with results
	user  bool // words of the user are newer
	users int  // newer messages of the user
	// old is the age of the message of the user before which replies without calls
	// may be folded.
	old int
	// folds says of each unit whether it is a step that may be folded, and carrier
	// how many counted tokens stay of the step that carries the list.
	folds   []bool
	carrier int
}

func newSearch(a *auto, v *furl.View, b furl.Budget, e economy) *search {
	return &search{a: a, v: v, b: b, e: e, files: newFiles(v.State, &a.dial), fails: newFailures(v, b)}
}

// each calls at for each block with what it weighs, and for those that may be
// hidden with the candidate.
func (s *search) each(at func(tokens int, c *candidate)) {
	steps := s.v.Steps
	s.findFolds(steps)
	s.user, s.users, s.newer = false, 0, 0
	var c candidate // one for all, or each would be allocated
	lead := true
	for i := len(s.v.Units) - 1; i >= 0; i-- {
		u := &s.v.Units[i]
		s.spoke(u)
		if s.folds[i] {
			c = candidate{unit: u, at: i, newer: s.newer, spoken: s.user, lead: lead}
			if s.mayFold(&c, steps); lead {
				c.freed -= s.carrier
			}
			lead = false
			at(u.Tokens, &c)
			s.newer += requests(u)
			continue
		}
		for j := len(u.Blocks) - 1; j >= 0; j-- {
			sb := &u.Blocks[j]
			weight := sb.Tokens
			if sb.Block.Kind == furl.KindThinking && s.user && s.b.Model.Thinking.LastOnly {
				weight = 0 // the provider drops it by itself
			}
			c = candidate{unit: u, at: i, block: sb, newer: s.newer}
			if u.Kind != furl.UnitStep || u.Protected || sb.Hold >= furl.Keep || !s.may(&c, steps) {
				at(weight, nil)
				continue
			}
			at(weight, &c)
		}
		s.newer += requests(u)
	}
}

// spoke takes note of a message of the user.
func (s *search) spoke(u *furl.Unit) {
	if u.Kind != furl.UnitUser {
		return
	}
	s.user = true
	if s.users++; s.users == oldReply {
		s.old = s.newer
	}
}

// findFolds finds the steps that may be folded. One of them stays to carry the
// list: together they must free more than that one takes.
func (s *search) findFolds(steps int) {
	s.folds = make([]bool, len(s.v.Units))
	n, freed := 0, 0
	var least carrierCost
	var c candidate // one for all, or each would be allocated
	for i := len(s.v.Units) - 1; i >= 0; i-- {
		u := &s.v.Units[i]
		s.spoke(u)
		if u.Kind == furl.UnitStep && s.newer < horizon {
			s.files.step(u, s.newer)
		}
		if c = (candidate{unit: u, at: i, newer: s.newer, spoken: s.user}); s.mayFold(&c, steps) {
			s.folds[i] = true
			n, freed = n+1, freed+c.freed
			if cost := s.a.carrierCostOf(&c, s.b.Model); cost.below(least) {
				least = cost
			}
		}
		s.newer += requests(u)
	}
	if s.carrier = least.size; n < 2 || !least.able || freed-least.size < minFreed {
		clear(s.folds)
	}
}

// may fills in the rest of a candidate, if it is one.
func (s *search) may(c *candidate, steps int) bool {
	d, sb := &s.a.dial, c.block
	if sb.Tokens < minFreed || sb.By != 0 && !sb.Block.IsResult() {
		return false
	}
	if sb.By != 0 && !isClip(s.v, sb) {
		return s.mayShorten(c, steps)
	}
	stay := d.keep // the age from which it may go
	switch kind := sb.Block.Kind; {
	case sb.Block.IsResult():
		c.kind, c.freed = aResult, sb.Tokens-standInTokens-d.expected(sb.Tokens)
		stay = s.stay(sb)
	case kind == furl.KindCall:
		if !s.a.inputs {
			return false
		}
		long := longestString(sb.Block.Args) / 4
		c.kind, c.freed = aCall, long-standInTokens-d.expected(long)
		if long < minString/4 {
			return false
		}
		if stay = d.inputs; s.e.cold {
			stay = 0
		}
	case kind == furl.KindThinking:
		if s.a.onlyResults || !s.user || !mayDropThinking(s.b.Model) {
			return false
		}
		c.kind, c.freed = aThought, sb.Tokens
	default:
		return false
	}
	if s.e.all {
		stay = 0 // the newest step stays all the same
	}
	c.waited = c.freed * max(1, min(steps-c.unit.Step, c.newer-stay+1))
	return c.newer >= stay && c.freed >= minFreed
}

// mayShorten fills in the rest of a candidate for the list of steps that were folded
// long ago, if it is one.
func (s *search) mayShorten(c *candidate, steps int) bool {
	d := &s.a.dial
	if d.listed == 0 || c.newer < d.listed || !isOldList(s.v, c.block) {
		return false
	}
	c.kind, c.freed = aList, c.block.Tokens-standInTokens-int(d.listShare*float64(c.block.Tokens))
	c.waited = c.freed * max(1, min(steps-c.unit.Step, c.newer-d.listed+1))
	return c.freed >= minFreed
}

// mayDropThinking reports whether thinking from before the user's newest words
// may be left out for the model, and would be billed if it were not.
func mayDropThinking(m furl.Model) bool {
	t := m.Thinking
	return t.Removable && !t.LastOnly && !t.Binds
}

// mayFold fills in the rest of a candidate for a whole step, if it is one: a
// step in which everything that could be hidden by itself may be. A reply without
// calls stays until several messages of the user are newer.
func (s *search) mayFold(c *candidate, steps int) bool {
	d, u := &s.a.dial, c.unit
	age := d.fold
	switch {
	case s.e.cold:
		age = d.foldCold
	case s.e.forced:
		age /= 2
	}
	if s.a.onlyResults || u.Kind != furl.UnitStep || c.newer < age || u.Protected || u.Hold >= furl.Keep || carriesList(s.v, u) {
		return false
	}
	calls, parts, waited := false, 0, 0
	for j := range u.Blocks {
		sb := &u.Blocks[j]
		calls = calls || sb.Block.Kind == furl.KindCall
		if sb.Block.Kind == furl.KindResult && sb.By == 0 && sb.Tokens >= smallResult {
			one := candidate{unit: u, block: sb, newer: c.newer}
			if !s.may(&one, steps) {
				return false
			}
			parts, waited = parts+one.freed, waited+one.waited
		}
		if sb.Block.Kind == furl.KindCall && !s.e.all && c.newer < s.stayWritten(sb.Block) {
			return false
		}
	}
	c.kind, c.freed = aStep, u.Tokens-lineTokens-int(d.foldShare*float64(u.Tokens))
	could := c.newer - age + 1 // for so many requests
	if !calls {
		if s.users < oldReply {
			return false
		}
		c.freed = u.Tokens - lineTokens - min(d.replied/4, u.Tokens)
		could = min(could, s.old+1)
	}
	// Its results could have been hidden by themselves before.
	c.waited = max(0, c.freed-parts)*max(1, min(steps-u.Step, could)) + waited
	return c.freed >= minFreed
}

// oldReply is how many messages of the user must be newer than a reply without
// calls for it to be folded: people refer to what was said last.
const oldReply = 3

// stayWritten is the age from which a step may be folded because of one of its
// calls: one that wrote text that may be edited next.
func (s *search) stayWritten(call *furl.Block) int {
	status := s.files.status[call.ID]
	if status < newestRead || !s.files.wrote[call.ID] {
		return 0
	}
	switch {
	case !s.user:
		return s.a.dial.written
	case status >= workedOn:
		return s.a.dial.worked
	}
	return s.a.dial.writtenAsked
}

// stay is the age from which a result may go.
func (s *search) stay(sb *furl.ShownBlock) int {
	d := &s.a.dial
	if s.fails.stay(sb) {
		return errorStays
	}
	status := s.files.status[sb.Block.ID]
	if s.e.cold { // hiding costs nothing; the newest step stays all the same
		switch {
		case status >= workedOn && !s.user:
			return d.editedCold
		case status == planned:
			return d.plannedCold
		case status >= newestRead:
			return d.readsCold
		}
		return 0
	}
	switch {
	case status == inEdit:
		return d.editing
	case status == workedOn:
		return d.edited
	case status == planned && s.user:
		return d.plannedAsked
	case status == planned:
		return d.planned
	case status == unedited && s.user:
		return d.asked
	case status == unedited && hasEdits(s.v.State):
		return d.paused
	case status == unedited:
		return d.unedited
	case s.user, status == otherCall, status == superseded:
		return d.keep
	}
	return max(d.keep, d.reads)
}

// errorStays is the age up to which what failed stays: it is what the model works on,
// and says what not to try again.
const errorStays = 8

// requests is 1 for a step with results, which one request sent for the first time.
func requests(u *furl.Unit) int { return min(1, results(u)) }

// room is what the names of a text of so many tokens may take.
func (d *dial) room(tokens int) nameBudget {
	return nameBudget{most: min(d.names, int(d.share*float64(tokens))), worth: d.worth}
}

// expected is what the names of a text of so many tokens take, on average: not
// every text has as many that are worth it.
func (d *dial) expected(tokens int) int { return d.room(tokens).most / 2 }

// longestString is the length of the longest string in a JSON value, in bytes.
func longestString(value []byte) int {
	longest := 0
	for i := 0; i < len(value); i++ {
		if value[i] != '"' {
			continue
		}
		start := i + 1
		for i++; i < len(value) && value[i] != '"'; i++ {
			if value[i] == '\\' {
				i++
			}
		}
		longest = max(longest, min(i, len(value))-start)
	}
	return longest
}
