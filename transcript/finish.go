package transcript

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// maxRewinds bounds the branches of one session, since going to one costs a
// fold of its path. Of a recording with more only the newest branch is read.
const maxRewinds = 1000

// finish appends everything to the session's log and gives the session. It
// mends on the way what no provider would take; see pairing. The builder is
// of no use afterwards.
func (b *builder) finish() *Session {
	b.prune()
	f := finisher{builder: b, pairing: pairing{answered: make(map[string]bool)}}
	for from := 0; from < len(b.entries); {
		to := from + 1
		for to < len(b.entries) && !b.entries[to].rewind {
			to++
		}
		f.branch(b.entries[from:to], ref(from+1))
		from = to
	}
	f.report()
	return b.Session
}

// prune keeps only the newest branch if there are too many.
func (b *builder) prune() {
	n := 0
	for i := range b.entries {
		if b.entries[i].rewind {
			n++
		}
	}
	if n <= maxRewinds {
		return
	}
	b.in.note("the recording branches %d times: only its newest branch was read", n)
	kept := make(map[ref]ref) // old to new
	var entries []entry
	for _, r := range b.path(b.last) {
		e := b.entries[r-1]
		e.parent = kept[e.parent]
		if e.cut != nil {
			var hide []ref
			for _, h := range e.cut.hide {
				if kept[h] != 0 {
					hide = append(hide, kept[h])
				}
			}
			e.cut.hide = hide
		}
		entries = append(entries, e)
		kept[r] = ref(len(entries))
	}
	b.entries, b.last = entries, ref(len(entries))
}

// finisher appends the entries of a builder to its log, branch by branch.
type finisher struct {
	*builder
	pairing
	sent *entry // an exchange whose reply has not come yet
	cuts int
}

// branch appends a run of entries up to the next rewind; first names the
// first of them.
func (f *finisher) branch(run []entry, first ref) {
	f.sent = nil
	var again []ref
	if run[0].rewind {
		again = f.goTo(&run[0])
		run, first = run[1:], first+1
	}
	f.results = make(map[string][]ref)
	for i := range run {
		if run[i].msg != nil {
			f.expect(run[i].msg, first+ref(i))
		}
	}
	for _, r := range again {
		f.entry(&f.entries[r-1])
	}
	for i := range run {
		if !run[i].done {
			f.entry(&run[i])
		}
	}
}

// goTo rewinds the log. A log goes back only to where no call is open; what
// lay between there and the wanted entry is given back to be said again.
func (f *finisher) goTo(e *entry) (again []ref) {
	path := f.path(e.parent)
	to := furl.Seq(0)
	for _, r := range path {
		to = max(to, f.entries[r-1].seq)
	}
	head, err := f.Log.Rewind(to, e.at, furl.Import)
	if err != nil { // only for a record that is not in the log
		f.in.skip(e.line, "%v", err)
		return nil
	}
	f.answered, f.open = make(map[string]bool), nil
	for _, r := range f.Log.Path(head.Parent) {
		if m, ok := r.Body.(*furl.Message); ok {
			f.noted(m)
		}
	}
	for _, r := range path {
		if f.entries[r-1].seq > head.Parent {
			again = append(again, r)
		}
	}
	return again
}

// entry appends one entry, and before it what it cannot be without.
func (f *finisher) entry(e *entry) {
	e.done = true
	switch {
	case e.msg != nil:
		if f.mustSettle(e.msg) {
			f.settle(e.msg)
		}
		f.message(e)
	case e.ex != nil:
		f.settle(nil)
		f.sent = e
	case e.cut != nil:
		f.settle(nil)
		f.reduce(e)
	}
}

// message appends a message, without what has no counterpart on the path.
func (f *finisher) message(e *entry) {
	m := f.fitting(e)
	if m == nil {
		return
	}
	e.msg = m
	if f.sent != nil && m.Role == furl.RoleAssistant {
		f.append(f.sent, f.sent.ex)
	}
	f.sent = nil
	f.in.measure(m)
	if f.append(e, m) {
		f.noted(m)
	}
}

func (f *finisher) append(e *entry, body furl.Body) bool {
	rec, err := f.Log.Append(f.Log.Head(), e.at, furl.Import, body)
	if err != nil {
		f.in.skip(e.line, "%v", err)
		return false
	}
	if e.seq == 0 {
		e.seq = rec.Seq
	}
	return true
}

// now is the time of the newest message on the path.
func (f *finisher) now() time.Time {
	s := f.Log.State()
	if s.Len() == 0 {
		return time.Time{}
	}
	return s.Time(s.Len() - 1)
}

// maxCuts bounds the recorded reductions of one session, since each costs a
// view. Later ones are skipped and reported.
const maxCuts = 1000

// reduce appends a recorded reduction. It hides whole steps, because a view
// that parts a call from its result is no request.
func (f *finisher) reduce(e *entry) {
	c := e.cut
	if f.cuts++; f.cuts > maxCuts {
		f.in.skip(e.line, "more than %d compactions", maxCuts)
		return
	}
	hidden := make(map[*furl.Message]bool, len(c.hide))
	for _, r := range c.hide {
		if r > 0 && int(r) <= len(f.entries) {
			hidden[f.entries[r-1].msg] = true
		}
	}
	s := f.Log.State()
	v := s.View(furl.Model{})
	var units []furl.Unit
	messages := 0
	for i := range v.Units {
		u := &v.Units[i]
		if !covers(s, u, hidden, v) {
			continue
		}
		units = append(units, *u)
		if u.Kind != furl.UnitMark {
			messages += u.Messages
		}
	}
	f.in.measure(c.show...)
	if len(units) == 0 {
		// What it hid is in another file; what it showed is the conversation.
		for _, m := range c.show {
			f.append(&entry{at: e.at, line: e.line}, m)
			f.noted(m)
		}
		return
	}
	red := &furl.Reduction{
		Stage: c.stage, Reason: c.reason, Before: c.before, After: c.after,
		Items: []furl.Item{{Spans: v.Cover(units), Show: furl.Mark{Messages: c.show}}},
	}
	if c.summary != nil {
		sum := *c.summary
		sum.Number, sum.Messages = 1, messages
		for _, old := range s.Reductions() {
			if old.Summary != nil {
				sum.Number = old.Summary.Number + 1
			}
		}
		red.Summary = &sum
	}
	f.append(e, red)
}

// covers reports whether a unit of the view holds anything of the hidden
// messages: a mark, for any of what it stands for.
func covers(s *furl.State, u *furl.Unit, hidden map[*furl.Message]bool, v *furl.View) bool {
	for i := u.First; i <= u.Last; i++ {
		sh := &v.Messages[i]
		if sh.Index >= 0 && hidden[sh.Msg] {
			return true
		}
	}
	if u.Kind != furl.UnitMark {
		return false
	}
	for _, sp := range v.Spans(u) {
		from, _ := s.Find(sp.First.Msg)
		to, _ := s.Find(sp.Last.Msg)
		for i := from; i <= to; i++ {
			if _, m := s.Message(i); hidden[m] {
				return true
			}
		}
	}
	return false
}

func hasResult(m *furl.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindResult })
}
