package transcript

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// builder collects what an importer finds in a recording, in recorded order,
// and makes a Session of it.
//
//	b := newBuilder(in, codec)
//	b.raw(at, line, raw)           // a message as it was on the wire
//	b.reply(at, furl.Exchange{…})  // right before each reply of the model
//	b.raw(at, line, raw)
//	s := b.finish()
//
// The importer sets the Session's ID, Title, Parent and Preamble, and
// everything that it knows better than the builder. Calls without results and
// results without calls are handled by finish.
type builder struct {
	*Session
	in      *input
	codec   protocol.Codec
	entries []entry
	last    ref // last entry of the current branch
}

// ref identifies an entry of a builder, counted from 1; 0 is the start of the
// conversation.
type ref int

// entry is one item found in a recording. Exactly one of msg, ex, cut, mask
// and rewind is set.
type entry struct {
	at     time.Time
	line   int // 0 if unknown
	parent ref // the entry before it on its branch
	msg    *furl.Message
	ex     *furl.Exchange
	body   func() []byte // of an exchange: makes the body of its request; nil if that was not recorded
	cut    *compaction
	mask   *masking
	rewind bool     // continue from parent
	seq    furl.Seq // its record, once appended
	done   bool     // already processed
	// said are the messages of a compaction that hid nothing. They became
	// part of the conversation.
	said []*furl.Message
}

// compaction is a recorded reduction of whole messages.
type compaction struct {
	// hide lists the messages that are no longer sent. With all, every
	// message so far is hidden except those in keep. A step is hidden whole
	// if any part of it is.
	hide []ref
	all  bool
	keep []ref
	// words lists messages with results that are still sent, but not the text
	// after them.
	words []ref
	// The messages shown by an earlier compaction are hidden too if this one
	// hides any message that the earlier one hid. With exact, only if over
	// names them.
	exact bool
	over  []ref
	// show replaces the hidden messages. If those are not in the recording,
	// show becomes part of the conversation. It must not be empty.
	show []*furl.Message
	// stage is the corresponding stage of furl.
	stage  string // "compact", "truncate"
	reason string
	// before and after are the prompt's size in tokens, 0 if unknown.
	before, after int
	// summary describes a compaction further; nil for other stages. The
	// builder fills in its Number and Messages.
	summary *furl.Summary
}

func newBuilder(in *input, codec protocol.Codec) *builder {
	return &builder{
		Session: &Session{Wire: codec.Format(), Log: furl.NewLog()},
		in:      in,
		codec:   codec,
	}
}

// raw adds a message as it was on the wire and keeps the bytes without a
// copy. A message that cannot be decoded is skipped and reported, and raw
// returns 0. An unknown time is zero, an unknown line 0.
func (b *builder) raw(at time.Time, line int, raw []byte) ref {
	if !b.in.decodable(raw) {
		return 0
	}
	m, err := b.codec.DecodeMessage(raw)
	if err != nil {
		b.in.skip(line, "%v", err)
		return 0
	}
	return b.message(at, line, m)
}

// blocks adds a message built from blocks, for formats that do not store a
// provider's wire format.
func (b *builder) blocks(at time.Time, line int, role furl.Role, blocks ...furl.Block) ref {
	m, err := b.codec.NewMessage(role, blocks)
	if err != nil {
		b.in.skip(line, "%v", err)
		return 0
	}
	return b.message(at, line, m)
}

// message adds a decoded message and counts its calls and results.
func (b *builder) message(at time.Time, line int, m *furl.Message) ref {
	if len(m.Blocks) == 0 {
		b.in.skip(line, "a message without content")
		return 0
	}
	if !b.in.countMessage(m) {
		return 0
	}
	b.Messages++
	for i := range m.Blocks {
		switch m.Blocks[i].Kind {
		case furl.KindCall:
			b.Calls++
		case furl.KindResult:
			b.Results++
		}
	}
	return b.add(entry{at: at, line: line, msg: m})
}

// rawOrEmpty is raw for messages as they were sent, which may have no content.
func (b *builder) rawOrEmpty(at time.Time, line int, raw []byte) {
	m, err := b.codec.DecodeMessage(raw)
	if err == nil && len(m.Blocks) == 0 && b.in.countMessage(m) {
		b.add(entry{at: at, line: line, msg: m})
		return
	}
	b.raw(at, line, raw)
}

// uncount undoes the counting of a message that is taken out again.
func (b *builder) uncount(m *furl.Message) {
	b.in.uncountMessage(m)
	b.Messages--
	for i := range m.Blocks {
		switch m.Blocks[i].Kind {
		case furl.KindCall:
			b.Calls--
		case furl.KindResult:
			b.Results--
		}
	}
}

// reply announces that the next message is the model's answer to everything
// before it. at is the time of the reply; the request is assumed to have been
// sent when the entry before it was recorded. The importer may fill in the
// returned Exchange until finish, for formats that record usage later.
func (b *builder) reply(at time.Time, ex furl.Exchange) *furl.Exchange {
	if b.in.refused != nil {
		return &ex
	}
	for r := b.last; r != 0; r = b.entries[r-1].parent {
		e := &b.entries[r-1]
		if !e.at.IsZero() {
			at = e.at
		}
		if e.msg != nil || !e.at.IsZero() {
			break
		}
	}
	if ex.Model != "" {
		b.Model = ex.Model
	}
	b.add(entry{at: at, ex: &ex})
	return &ex
}

// window notes the context window that the recording gives for a model. The newest
// counts.
func (b *builder) window(model string, tokens int) {
	if model == "" || tokens <= 0 {
		return
	}
	if b.Windows == nil {
		b.Windows = make(map[string]int)
	}
	b.Windows[model] = tokens
}

// compact adds a recorded compaction.
func (b *builder) compact(at time.Time, line int, c compaction) ref {
	b.Compactions++
	return b.add(entry{at: at, line: line, cut: &c})
}

// rewind continues the conversation from the entry to; 0 starts anew.
func (b *builder) rewind(at time.Time, to ref) {
	if to == b.last {
		return
	}
	b.entries = append(b.entries, entry{at: at, parent: to, rewind: true})
	b.last = to
}

// path returns the entries from the start to r.
func (b *builder) path(r ref) []ref {
	n := 0
	for p := r; p != 0; p = b.entries[p-1].parent {
		n++
	}
	refs := make([]ref, n)
	for p := r; p != 0; p = b.entries[p-1].parent {
		n--
		refs[n] = p
	}
	return refs
}

// soFar returns the messages of the current branch, oldest first. Its cost
// grows with their number; a compaction that hides all of them should set all
// instead.
func (b *builder) soFar() []ref {
	refs := b.path(b.last)
	kept := refs[:0]
	for _, r := range refs {
		if b.entries[r-1].msg != nil {
			kept = append(kept, r)
		}
	}
	return kept
}

func (b *builder) add(e entry) ref {
	e.parent = b.last
	b.entries = append(b.entries, e)
	b.last = ref(len(b.entries))
	return b.last
}

// measure counts the tokens of messages if the Reader has a Measure function.
func (in *input) measure(msgs ...*furl.Message) {
	if in.counter == nil {
		return
	}
	for _, m := range msgs {
		m.Measure(in.counter)
	}
}
