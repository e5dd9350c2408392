package transcript

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
)

// maxRewinds bounds the branches of one session, and maxFolded the entries
// folded again for them, because switching to a branch costs a fold of its
// path. If a recording exceeds them, only its newest branch is read.
const (
	maxRewinds = 1000
	maxFolded  = 100_000_000
)

// finish appends all entries to the session's log and returns the session. It
// also repairs what providers would refuse; see pairing. The builder must not
// be used afterwards.
func (b *builder) finish() *Session {
	b.prune()
	f := finisher{builder: b, pairing: pairing{answered: make(map[string]bool), halves: make(map[string]bool)}, thought: make(map[string]bool), kept: make(map[furl.Digest]bool)}
	for from := 0; from < len(b.entries); {
		to := from + 1
		for to < len(b.entries) && !b.entries[to].rewind {
			to++
		}
		f.branch(b.entries[from:to], ref(from+1))
		from = to
	}
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
	if n <= maxRewinds && n*len(b.entries) <= maxFolded {
		return
	}
	b.in.note("imported the newest branch only: the recording has %d branches", n)
	kept := make(map[ref]ref) // old to new
	var entries []entry
	for _, r := range b.path(b.last) {
		e := b.entries[r-1]
		e.parent = kept[e.parent]
		if e.mask != nil {
			for i, h := range e.mask.hide {
				e.mask.hide[i].of = kept[h.of]
			}
		}
		if e.cut != nil {
			e.cut.hide, e.cut.keep = renamed(e.cut.hide, kept), renamed(e.cut.keep, kept)
			e.cut.over, e.cut.words = renamed(e.cut.over, kept), renamed(e.cut.words, kept)
		}
		entries = append(entries, e)
		kept[r] = ref(len(entries))
	}
	b.entries, b.last = entries, ref(len(entries))
}

func renamed(refs []ref, names map[ref]ref) (out []ref) {
	for _, r := range refs {
		if n := names[r]; n != 0 {
			out = append(out, n)
		}
	}
	return out
}

// finisher appends the entries of a builder to its log, branch by branch.
type finisher struct {
	*builder
	pairing
	sent *entry // an exchange whose reply has not been read yet
	// Reasoning that waits for the output it belongs to, and the ids of all
	// reasoning on the path.
	thinking []*entry
	thought  map[string]bool
	kept     map[furl.Digest]bool // the session's contents
	lists    *rebuild.Lists       // of the newest request whose body is described
	cuts     int                  // reductions so far
	seen     int                  // units examined for them
}

// branch appends a run of entries up to the next rewind; first is the ref of
// the first entry.
func (f *finisher) branch(run []entry, first ref) {
	var again []ref
	if run[0].rewind {
		again = f.goTo(&run[0])
		run, first = run[1:], first+1
	}
	f.results, f.answers = make(map[string][]ref), make(map[string][]ref)
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
	f.thoughtOf(true)
	f.endRequest()
	f.release()
}

// goTo rewinds the log. A log can only rewind to a record where no call is
// open; the entries between that record and e are returned, to be appended
// again.
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
	f.answered, f.open, f.halves = make(map[string]bool), nil, make(map[string]bool)
	clear(f.thought)
	for _, r := range f.Log.Path(head.Parent) {
		if m, ok := r.Body.(*furl.Message); ok {
			f.track(m)
			if f.reasons(m) {
				f.thought[m.Blocks[0].ID] = true
			}
		}
	}
	for _, r := range path {
		if f.entries[r-1].seq > head.Parent {
			again = append(again, r)
		}
	}
	return again
}

// entry appends one entry, and first the entries that it depends on.
func (f *finisher) entry(e *entry) {
	e.done = true
	if len(f.held) > 0 && (e.cut != nil || e.msg != nil && e.msg.Role != furl.RoleAssistant && !f.follows(e.msg)) {
		f.release()
	}
	switch {
	case e.msg != nil && f.follows(e.msg):
		f.held = append(f.held, e)
		return
	case e.msg != nil && f.reasons(e.msg):
		f.think(e)
		return
	case e.mask == nil:
		f.thoughtOf(e.msg != nil && e.msg.Role == furl.RoleAssistant)
	}
	switch {
	case e.msg != nil:
		if f.mustSettle(e.msg) {
			f.settle(e.msg)
		}
		f.message(e)
	case e.ex != nil:
		f.settle(nil)
		f.endRequest()
		f.sent = e
	case e.cut != nil:
		f.settle(nil)
		f.endRequest()
		f.compact(e)
	case e.mask != nil:
		f.mask(e)
	}
}

// message appends a message without the parts that have no counterpart on the
// path.
func (f *finisher) message(e *entry) {
	m := f.fitting(e)
	if m == nil {
		return
	}
	e.msg = m
	f.ensureUserFirst(e)
	if f.sent != nil && m.Role == furl.RoleAssistant {
		f.request(f.sent)
		f.sent = nil
	}
	f.endRequest()
	f.in.measure(m)
	if f.append(e, m) {
		f.track(m)
	}
	if len(f.held) > 0 && !f.Log.State().AwaitsProvider() {
		f.release()
	}
}

// These texts replace a beginning that was not recorded, and whatever made
// the model continue after a reply.
const (
	noBeginning    = "[the beginning was not recorded]"
	nothingBetween = "[what came between was not recorded]"
)

// ensureUserFirst ensures that the reply in e answers something. All providers refuse a
// request without messages; Anthropic refuses one that starts with the model,
// and its newer models refuse one that ends with the model.
func (f *finisher) ensureUserFirst(e *entry) {
	switch {
	case e.msg.Role != furl.RoleAssistant:
	case f.Log.State().Len() == 0:
		f.in.begun++
		f.addUserText(e, noBeginning)
	case f.sent != nil:
		f.separateReplies(e)
	}
}

// separateReplies adds text between two replies where Anthropic requires it.
// After a summary, the request ends with the summary. No text goes between a call
// that the provider runs and its answer.
func (f *finisher) separateReplies(e *entry) {
	if f.Wire == furl.FormatAnthropic && f.inReply() && !f.afterMarker() && !f.Log.State().AwaitsProvider() {
		f.in.parted++
		f.addUserText(e, nothingBetween)
	}
}

// afterMarker reports whether the model sees a marker of the user last.
func (f *finisher) afterMarker() bool {
	v := f.Log.State().View(furl.Model{})
	n := len(v.Messages)
	return n > 0 && v.Messages[n-1].Index < 0 && v.Messages[n-1].Msg.Role == furl.RoleUser
}

// addUserText adds a message of the user before the content of e.
func (f *finisher) addUserText(e *entry, words string) {
	m, err := f.codec.NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: words}})
	if err != nil {
		return // no codec refuses a text
	}
	at := e.at
	if f.sent != nil {
		at = f.sent.at
	}
	f.in.measure(m)
	f.append(&entry{at: at, line: e.line}, m)
}

// endRequest stops waiting for the reply to a request. The request is
// recorded if its usage is known.
func (f *finisher) endRequest() {
	if f.sent != nil && f.sent.ex.Usage.Prompt() > 0 && f.Log.State().Len() > 0 {
		f.separateReplies(f.sent)
		f.request(f.sent)
	}
	f.sent = nil
}

// request appends an exchange, with a description of its request's body if the Reader asks for it.
func (f *finisher) request(e *entry) {
	if f.in.bodies && e.body != nil {
		if parts := rebuild.Cut(e.body(), "messages", nil, nil); parts != nil {
			var contents [][]byte
			e.ex.Request, contents, f.lists = rebuild.Describe(f.Log.Records(0), furl.Seq(f.Log.Len()+1), f.lists, parts, nil)
			for _, c := range contents {
				if d := furl.DigestOf(c); !f.kept[d] {
					f.kept[d] = true
					f.Contents = append(f.Contents, c)
				}
			}
		}
	}
	f.append(e, e.ex)
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

// lastTime returns the time of the newest message on the path.
func (f *finisher) lastTime() time.Time {
	s := f.Log.State()
	if s.Len() == 0 {
		return time.Time{}
	}
	return s.Time(s.Len() - 1)
}

func hasResult(m *furl.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindResult })
}
