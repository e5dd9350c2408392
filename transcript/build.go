package transcript

import (
	"time"

	"github.com/furlhq/furl"
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
// The importer sets the Session's ID, Title, Parent and Preamble, and what
// else it knows better than the builder. It need not care about calls without
// results and results without calls; finish does.
type builder struct {
	*Session
	in      *input
	codec   furl.Codec
	entries []entry
	last    ref // where the conversation stands
}

// ref names an entry of a builder, from 1; 0 is the start of the conversation.
type ref int

// entry is one thing found. One of msg, ex, cut, mask and rewind is set.
type entry struct {
	at     time.Time
	line   int // 0 unknown
	parent ref // the entry before it on its branch
	msg    *furl.Message
	ex     *furl.Exchange
	cut    *compaction
	mask   *masking
	rewind bool     // go on from parent
	seq    furl.Seq // its record, once appended
	done   bool     // it had its turn
	// said are the messages of a compaction that hid nothing and so became
	// part of the conversation.
	said []*furl.Message
}

// compaction is a recorded reduction of whole messages.
type compaction struct {
	// hide are the messages no longer sent; or all says that none of those
	// so far is but keep. A step is hidden whole if any part of it is.
	hide []ref
	all  bool
	keep []ref
	// What an earlier compaction showed is hidden too if this one hides
	// anything that one did; with exact only if over names it.
	exact bool
	over  []ref
	// show stands in their place; if they are not in the recording, it
	// becomes part of the conversation instead. It must not be empty.
	show []*furl.Message
	// stage is the stage of furl that does the like.
	stage  string // "compact", "truncate"
	reason string
	// before and after are the sizes of the prompt in tokens, 0 if unknown.
	before, after int
	// summary says more about a compaction; nil for other stages. Its
	// Number and Messages are filled in.
	summary *furl.Summary
}

func newBuilder(in *input, codec furl.Codec) *builder {
	return &builder{
		Session: &Session{Wire: codec.Format(), Log: furl.NewLog()},
		in:      in,
		codec:   codec,
	}
}

// raw adds a message as it was on the wire; the bytes are kept, not copied.
// One that cannot be decoded is skipped and reported, and gives 0. An unknown
// time is zero, an unknown line 0.
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

// blocks adds a message built from blocks, for formats that are no
// provider's own.
func (b *builder) blocks(at time.Time, line int, role furl.Role, blocks ...furl.Block) ref {
	m, err := b.codec.NewMessage(role, blocks)
	if err != nil {
		b.in.skip(line, "%v", err)
		return 0
	}
	return b.message(at, line, m)
}

// message adds a decoded message, and counts it with its calls and results.
func (b *builder) message(at time.Time, line int, m *furl.Message) ref {
	if len(m.Blocks) == 0 {
		b.in.skip(line, "a message without content")
		return 0
	}
	if !b.in.said(m) {
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

// reply announces that the next message is the model's answer to all that
// stands before it. at is the reply's own time; the request is taken to have
// gone out when what stands before it was recorded. The Exchange given back
// may be filled in until finish, for formats that record usage later.
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

// compact adds a recorded reduction.
func (b *builder) compact(at time.Time, line int, c compaction) ref {
	b.Compactions++
	return b.add(entry{at: at, line: line, cut: &c})
}

// rewind makes the conversation go on from the entry to; 0 starts anew.
func (b *builder) rewind(at time.Time, to ref) {
	if to == b.last {
		return
	}
	b.entries = append(b.entries, entry{at: at, parent: to, rewind: true})
	b.last = to
}

// path gives the entries from the start to r.
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

// soFar gives the messages of the current branch, oldest first. It costs their
// number; a compaction that hides them all is cheaper said with all.
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

// measure counts the tokens of messages, if the caller wants that.
func (in *input) measure(msgs ...*furl.Message) {
	if in.counter == nil {
		return
	}
	for _, m := range msgs {
		m.Measure(in.counter)
	}
}
