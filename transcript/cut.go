package transcript

import (
	"github.com/furlhq/furl"
)

// maxCuts bounds the recorded reductions of one session, since each costs a
// view. Later ones are skipped and reported.
const maxCuts = 1000

// compact appends a recorded compaction. It hides whole steps, because a view
// that parts a call from its result is no request.
func (f *finisher) compact(e *entry) {
	c := e.cut
	if f.cuts++; f.cuts > maxCuts {
		f.in.skip(e.line, "more than %d reductions", maxCuts)
		return
	}
	named := f.messagesOf(c.hide)
	hidden := func(m *furl.Message) bool { return named[m] }
	if c.all {
		kept := f.messagesOf(c.keep)
		hidden = func(m *furl.Message) bool { return !kept[m] }
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

// messagesOf gives the messages of entries.
func (f *finisher) messagesOf(refs []ref) map[*furl.Message]bool {
	set := make(map[*furl.Message]bool, len(refs))
	for _, r := range refs {
		if r > 0 && int(r) <= len(f.entries) {
			set[f.entries[r-1].msg] = true
		}
	}
	return set
}

// covers reports whether a unit of the view holds anything of the hidden
// messages: a mark, for any of what it stands for.
func covers(s *furl.State, u *furl.Unit, hidden func(*furl.Message) bool, v *furl.View) bool {
	for i := u.First; i <= u.Last; i++ {
		sh := &v.Messages[i]
		if sh.Index >= 0 && hidden(sh.Msg) {
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
			if _, m := s.Message(i); hidden(m) {
				return true
			}
		}
	}
	return false
}
