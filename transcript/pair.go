package transcript

import (
	"slices"

	"github.com/furlhq/furl"
)

// noResult replaces a result that the recording does not contain.
const noResult = "[no result was recorded]"

// maxOpen bounds the calls that wait for results at one time: their cost is
// quadratic. Further calls are skipped and reported.
const maxOpen = 4096

// pairing keeps calls and results together, because providers refuse a
// request with only one of them:
//
//   - A call without a result gets a placeholder directly after its step,
//     unless it is the end of its branch.
//   - A result recorded late moves to its call.
//   - Skipped: a result without a call, a second result of a call, and a second
//     call with an id already on the path, unless the format is OpenAI's and the
//     first call is answered.
type pairing struct {
	answered map[string]bool  // the calls of the path: whether they have a result
	open     []string         // calls without a result, oldest first
	results  map[string][]ref // the messages with results further on, by call
	halves   map[string]bool  // the provider's calls of the path: whether they wait for their answer
	answers  map[string][]ref // the messages with such an answer further on
	held     []*entry         // messages that follow the answer of such a call
}

// expect records the results of a later message.
func (p *pairing) expect(m *furl.Message, r ref) {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == furl.KindResult {
			id := m.Blocks[i].ID
			p.results[id] = append(p.results[id], r)
		} else if m.Blocks[i].Half == furl.HalfAnswer {
			id := m.Blocks[i].ID
			p.answers[id] = append(p.answers[id], r)
		}
	}
}

// track updates the pairing for a message that was added to the path.
func (p *pairing) track(m *furl.Message) {
	for i := range m.Blocks {
		id := m.Blocks[i].ID
		if half := m.Blocks[i].Half; half != 0 {
			p.halves[id] = half == furl.HalfCall
		}
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

// follows reports whether a message was recorded before the answer to a call that the
// provider runs, and follows it: only results come between the two.
func (f *finisher) follows(m *furl.Message) bool {
	if f.Wire != furl.FormatAnthropic || m.Role == furl.RoleAssistant || hasResult(m) || !f.Log.State().AwaitsProvider() {
		return false
	}
	for id, waits := range f.halves {
		if !waits {
			continue
		}
		for _, r := range f.answers[id] {
			if !f.entries[r-1].done {
				return true
			}
		}
	}
	return false
}

// release appends the messages that were held.
func (f *finisher) release() {
	held := f.held
	f.held = nil
	for _, e := range held {
		f.in.behind++
		f.entry(e)
	}
}

// mustSettle reports whether open calls need results before m. Results and
// further messages of the same reply need none; Responses accepts items in
// any order.
func (f *finisher) mustSettle(m *furl.Message) bool {
	if len(f.open) == 0 {
		return false
	}
	if m.Role == furl.RoleAssistant {
		return f.Wire != furl.FormatResponses && !f.inReply()
	}
	// Text after a result in one message ends the results.
	return !hasResult(m) || m.Blocks[len(m.Blocks)-1].Kind != furl.KindResult
}

// inReply reports whether the last message is the model's.
func (f *finisher) inReply() bool {
	s := f.Log.State()
	if s.Len() == 0 {
		return false
	}
	_, m := s.Message(s.Len() - 1)
	return m.Role == furl.RoleAssistant
}

// settle gives every open call its result, except those that m, the next
// message, contains.
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
	// Placeholders first: a late result may be followed by text.
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

// later finds a recorded result of a call in a later message.
func (f *finisher) later(id string) (ref, bool) {
	for _, r := range f.results[id] {
		if !f.entries[r-1].done {
			return r, true
		}
	}
	return 0, false
}

// missing adds a placeholder result to a call.
func (f *finisher) missing(id string) {
	role := furl.RoleTool
	if f.Wire == furl.FormatAnthropic {
		role = furl.RoleUser
	}
	m, err := f.codec.NewMessage(role, []furl.Block{{Kind: furl.KindResult, ID: id, Text: noResult, Error: true}})
	if err != nil {
		f.in.skip(0, "call %q has no result and a placeholder was refused: %v", id, err)
		f.open = slices.DeleteFunc(f.open, func(o string) bool { return o == id })
		return
	}
	f.in.made++
	f.in.measure(m)
	if f.append(&entry{at: f.lastTime()}, m) {
		f.track(m)
	}
}

// fitting returns the message of an entry without the blocks that are not
// allowed on the path; nil if no block is left.
func (f *finisher) fitting(e *entry) *furl.Message {
	m := e.msg
	drop := make(map[int]bool)
	calls, results := make(map[string]bool), make(map[string]bool)
	for i := range m.Blocks {
		id := m.Blocks[i].ID
		switch m.Blocks[i].Kind {
		case furl.KindCall:
			// OpenAI accepts an id again once its call is answered.
			if done, known := f.answered[id]; known && (!done || f.Wire == furl.FormatAnthropic) || calls[id] {
				f.in.skip(e.line, "second call with the id %q", id)
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
				f.in.skip(e.line, "result for the call %q, which was not recorded", id)
				drop[i] = true
			case answered || results[id]:
				f.in.skip(e.line, "second result for the call %q", id)
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

// without returns a message without some of its blocks, nil if no block is
// left.
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
	f.in.skip(e.line, "the rest of the message is invalid: %v", err)
	return nil
}
