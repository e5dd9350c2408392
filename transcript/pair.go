package transcript

import (
	"slices"

	"github.com/furlhq/furl"
)

// noResult stands for a result that the recording does not have.
const noResult = "[no result was recorded]"

// maxOpen bounds the calls that wait for results at one time: what they cost
// grows with their square. Calls beyond are left out and reported.
const maxOpen = 4096

// pairing keeps calls and results together, because no provider takes a
// request in which one is without the other:
//
//   - A call without a result gets one that says so, right behind its step,
//     unless nothing follows it on its branch.
//   - A result recorded late moves up to its call.
//   - A result without a call, or of a call that has one, is left out, and so
//     is a second call with an id the path has already, unless the format is
//     OpenAI's and the first is answered.
type pairing struct {
	answered map[string]bool  // the calls of the path: whether they have a result
	open     []string         // those that have none, oldest first
	results  map[string][]ref // the messages with results further on, by call
}

// expect notes the results in a message further on.
func (p *pairing) expect(m *furl.Message, r ref) {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == furl.KindResult {
			id := m.Blocks[i].ID
			p.results[id] = append(p.results[id], r)
		}
	}
}

// noted takes in a message that was added to the path.
func (p *pairing) noted(m *furl.Message) {
	for i := range m.Blocks {
		id := m.Blocks[i].ID
		switch m.Blocks[i].Kind {
		case furl.KindCall:
			p.answered[id] = false
			p.open = append(p.open, id)
		case furl.KindResult:
			p.answered[id] = true
			if at := slices.Index(p.open, id); at >= 0 {
				p.open = slices.Delete(p.open, at, at+1)
			}
		}
	}
}

// mustSettle reports whether m may not follow while calls are open. Results
// may, and more of the same reply; Responses takes items in any order.
func (f *finisher) mustSettle(m *furl.Message) bool {
	if len(f.open) == 0 {
		return false
	}
	if m.Role == furl.RoleAssistant {
		return f.Wire != furl.FormatResponses && !f.inReply()
	}
	// Words behind a result in one message end the results.
	return !hasResult(m) || m.Blocks[len(m.Blocks)-1].Kind != furl.KindResult
}

// inReply reports whether the model spoke last.
func (f *finisher) inReply() bool {
	s := f.Log.State()
	if s.Len() == 0 {
		return false
	}
	_, m := s.Message(s.Len() - 1)
	return m.Role == furl.RoleAssistant
}

// settle gives every open call its result, those aside that m, which comes
// next, has itself.
func (f *finisher) settle(m *furl.Message) {
	if len(f.open) == 0 {
		return
	}
	own := make(map[string]bool)
	if m != nil {
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindResult {
				own[m.Blocks[i].ID] = true
			}
		}
	}
	// Made results first: a late one may have words behind it.
	var late []ref
	for _, id := range slices.Clone(f.open) {
		if own[id] {
			continue
		}
		if r, ok := f.later(id); ok {
			if !slices.Contains(late, r) {
				late = append(late, r)
			}
			continue
		}
		f.missing(id)
	}
	for _, r := range late {
		f.in.moved++
		e := &f.entries[r-1]
		e.done = true
		sent := f.sent
		f.sent = nil // a late result does not come between a request and its reply
		f.message(e)
		f.sent = sent
	}
}

// later finds a recorded result of a call further on.
func (f *finisher) later(id string) (ref, bool) {
	for _, r := range f.results[id] {
		if !f.entries[r-1].done {
			return r, true
		}
	}
	return 0, false
}

// missing adds the result of a call that has none.
func (f *finisher) missing(id string) {
	role := furl.RoleTool
	if f.Wire == furl.FormatAnthropic {
		role = furl.RoleUser
	}
	m, err := f.codec.NewMessage(role, []furl.Block{{Kind: furl.KindResult, ID: id, Text: noResult, Error: true}})
	if err != nil {
		f.in.skip(0, "the call %q has no result and cannot be given one: %v", id, err)
		f.open = slices.DeleteFunc(f.open, func(o string) bool { return o == id })
		return
	}
	f.in.made++
	f.in.measure(m)
	if f.append(&entry{at: f.now()}, m) {
		f.noted(m)
	}
}

// fitting gives the message of an entry without the blocks that cannot stand
// on the path; nil if nothing is left.
func (f *finisher) fitting(e *entry) *furl.Message {
	m := e.msg
	drop := make(map[int]bool)
	calls, results := make(map[string]bool), make(map[string]bool)
	for i := range m.Blocks {
		id := m.Blocks[i].ID
		switch m.Blocks[i].Kind {
		case furl.KindCall:
			// OpenAI takes an id again once its call is answered.
			if done, known := f.answered[id]; known && (!done || f.Wire == furl.FormatAnthropic) || calls[id] {
				f.in.skip(e.line, "a second call with the id %q", id)
				drop[i] = true
			} else if len(f.open)+len(calls) >= maxOpen {
				f.in.skip(e.line, "more than %d calls without results", maxOpen)
				drop[i] = true
			}
			calls[id] = true
		case furl.KindResult:
			answered, known := f.answered[id]
			switch {
			case !known && !calls[id]:
				f.in.skip(e.line, "a result for the call %q, which was not recorded", id)
				drop[i] = true
			case answered || results[id]:
				f.in.skip(e.line, "a second result for the call %q", id)
				drop[i] = true
			}
			results[id] = true
		}
	}
	if len(drop) == 0 {
		return m
	}
	return f.without(e, drop)
}

// without gives a message without some of its blocks, nil if nothing is left.
func (f *finisher) without(e *entry, drop map[int]bool) *furl.Message {
	sh := furl.Shown{Msg: e.msg}
	for i := range e.msg.Blocks {
		if !drop[i] {
			sh.Blocks = append(sh.Blocks, furl.ShownBlock{Block: &e.msg.Blocks[i], Pos: furl.Pos{Block: i}})
		}
	}
	if len(sh.Blocks) == 0 {
		return nil
	}
	raws, err := f.codec.EncodeMessage(sh)
	if err == nil && len(raws) == 1 {
		var m *furl.Message
		if m, err = f.codec.DecodeMessage(raws[0]); err == nil {
			return m
		}
	}
	f.in.skip(e.line, "the rest of the message cannot be kept: %v", err)
	return nil
}
