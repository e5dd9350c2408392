package transcript

import "github.com/furlhq/furl"

// If a reply was interrupted after its reasoning, the recording contains
// reasoning without output. The Responses API refuses a request with such an
// item, and a request that contains an item twice; both are skipped. At the
// end of a branch, where no request follows, reasoning stays.

// reasons reports whether m is a reasoning item that the API knows by id.
func (f *finisher) reasons(m *furl.Message) bool {
	return f.Wire == furl.FormatResponses && len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindThinking && m.Blocks[0].ID != ""
}

// think holds reasoning back until its output is added.
func (f *finisher) think(e *entry) {
	id := e.msg.Blocks[0].ID
	if f.thought[id] {
		f.in.skip(e.line, "a second item with the id %q", id)
		return
	}
	f.thought[id] = true
	f.thinking = append(f.thinking, e)
}

// thoughtOf appends the reasoning held back if the model continues, and drops
// it otherwise.
func (f *finisher) thoughtOf(goesOn bool) {
	held := f.thinking
	f.thinking = nil
	for _, e := range held {
		if !goesOn {
			f.in.unused++
			delete(f.thought, e.msg.Blocks[0].ID)
			continue
		}
		f.message(e)
	}
}
