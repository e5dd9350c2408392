package exchange

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/session"
)

// A client without an id may change the front of its history too. Then no session
// has a start of the history, and only the messages after the front tell which
// session it continues. Two conversations may have equal short texts, and the wrong
// session would mix them, so a new session is started unless the run of messages
// belongs to one session without doubt:
//
//   - It has a call with an id that a provider made at random. Or:
//   - It has enough different content, ends with the session's newest message of the
//     client, the request continues that with at most one reply, its instructions and
//     tools are the same, and no other session has such a run.
//
// Only sessions in memory are compared: those used recently.

const (
	// ownMessages and ownBytes are how many different messages, and bytes in them, a
	// run without random ids must have.
	ownMessages, ownBytes = 8, 128
	// maxNewest is how many of a session's newest messages are looked for first.
	maxNewest = 8
	// maxSearched is how many records before the head are searched for an exchange.
	maxSearched = 64
)

// byOverlap returns the session in memory with a run of the history's messages, nil if
// there is none or it is in doubt. With ids set, the run must have a random id.
func (a *Sessions) byOverlap(in *incoming, ids bool) *session.Session {
	msgs := in.req.Messages
	if in.hints.Hint != "" || firstReply(msgs) < 0 || lastCompaction(msgs) >= 0 {
		return nil
	}
	newest := make(map[furl.Digest]bool)
	for i := max(0, len(msgs)-maxAnchors); i < len(msgs); i++ {
		if !fingerprint.AddsNothing(&msgs[i]) {
			newest[msgs[i].Digest] = true
		}
	}
	var best *session.Session
	most, several := 0, false
	for _, s := range a.InMemory() {
		n := 0
		a.read(s, func(t *tx) { n = t.overlapOf(in, newest, ids) })
		switch {
		case n == 0:
		case !ids:
			several = several || best != nil
			best = s
		case n > most || n == most && best.Meta().ForkOf != "":
			best, most = s, n
		}
	}
	if several {
		return nil
	}
	return best
}

// overlapOf returns the number of messages in the run of a history that is in the
// session, 0 if it is in doubt.
func (t *tx) overlapOf(in *incoming, newest map[furl.Digest]bool, ids bool) int {
	st, meta := t.Log().State(), t.Meta()
	found := false
	for i := st.Len() - 1; i >= max(0, st.Len()-maxNewest) && !found; i-- {
		_, m := st.Message(i)
		found = newest[m.Digest]
	}
	if !found || meta.Hint != "" || meta.Format != in.req.Format || meta.Client != "" && in.hints.Client != "" && meta.Client != in.hints.Client {
		return 0
	}
	if t.recallTools() == "" && !t.samePreamble(in) || !ids && t.recallTools() != "" {
		return 0
	}
	t.index.update(t.Log())
	in = &incoming{req: in.req, chains: in.chains, hints: in.hints}
	in.tailLen = t.volatileTail(in.req.Messages)
	n := len(in.req.Messages) - in.tailLen
	pl := t.index.find(t.Log(), in.chains[:n], in.req.Messages[:n])
	o := t.findOverlap(in, pl, func(o *overlap, t *tx, msgs []furl.Message) bool {
		if ids {
			return o.hasRandomID(msgs)
		}
		c := o.content(msgs)
		return c.messages >= ownMessages && c.bytes >= ownBytes && c.replies > 1 && t.continuesNewest(o, msgs)
	})
	if o == nil {
		return 0
	}
	return len(o.pairs)
}

// hasRandomID reports whether a run has a call with a random id.
func (o *overlap) hasRandomID(msgs []furl.Message) bool {
	for _, p := range o.pairs {
		m := &msgs[p.index]
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindCall && fingerprint.IsRandomID(m.Blocks[i].ID) {
				return true
			}
		}
	}
	return false
}

// continuesNewest reports whether a run ends with the newest message of the client on
// the current path, and the history has at most one reply after it.
func (t *tx) continuesNewest(o *overlap, msgs []furl.Message) bool {
	st := t.Log().State()
	end, ok := st.Find(o.pairs[0].last)
	if !ok {
		return false
	}
	for i := end + 1; i < st.Len(); i++ {
		if _, m := st.Message(i); m.Role != furl.RoleAssistant && !m.HasOwn() {
			return false
		}
	}
	replies := 0
	for i := o.pairs[0].index + 1; i < len(msgs); i++ {
		if msgs[i].Role == furl.RoleAssistant && msgs[i-1].Role != furl.RoleAssistant {
			replies++
		}
	}
	return replies <= 1
}

// samePreamble reports whether the newest exchange of the current path had the
// instructions and tools of the request.
func (t *tx) samePreamble(in *incoming) bool {
	seq := t.Log().Head()
	for n := 0; seq != 0 && n < maxSearched; n++ {
		r := t.Log().At(seq)
		if x, ok := r.Body.(*furl.Exchange); ok {
			return x.Preamble == in.req.PreambleDigest
		}
		seq = r.Parent
	}
	return false
}

// A history whose start was in no earlier request may be a part of a conversation, or
// begin with examples that other conversations have too. A session that it starts
// continues only with a reply that was recorded in the session.

// settingPartial is the setting of such a session. It is never changed.
const settingPartial = "partial"

// startsPartial reports whether a request without an id starts such a session. known
// is set if a session has its start.
func startsPartial(in *incoming, known bool) bool {
	if in.hints.Hint != "" || in.hints.Session != "" || len(in.req.Messages) == 0 { // a request with nothing but a command has none
		return false
	}
	first := &in.req.Messages[0]
	return !known && firstReply(in.req.Messages) >= 0 || len(first.Blocks) > 0 && first.Blocks[0].Kind == furl.KindResult
}

// continues reports whether a history that has the messages of a session up to a
// record may continue it.
func (a *Sessions) continues(ctx context.Context, id furl.SessionID, seq furl.Seq) bool {
	s, err := a.OpenCached(ctx, id)
	if err != nil {
		return false
	}
	ok := false
	a.read(s, func(t *tx) {
		if seq <= furl.Seq(t.Log().Len()) {
			ok = t.hasReplyUpTo(seq) || t.isUnanswered(seq)
		}
	})
	return ok
}

// isUnanswered reports whether a record is the last message of the current path, and no
// reply follows it: the request is repeated, or its reply was cut off.
func (t *tx) isUnanswered(seq furl.Seq) bool {
	st := t.Log().State()
	if st.Len() == 0 || len(t.pending) > 0 {
		return false
	}
	last, m := st.Message(st.Len() - 1)
	return last == seq && m.Role != furl.RoleAssistant && !m.HasOwn()
}

// hasReplyUpTo reports whether the path to a record has enough different content in
// replies that were recorded from the model, or a random id.
func (t *tx) hasReplyUpTo(seq furl.Seq) bool {
	seen, size := make(map[furl.Digest]bool), 0
	for ; seq != 0; seq = t.messageBefore(seq) {
		r := t.Log().At(seq)
		m, ok := r.Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant || seen[m.Digest] {
			continue
		}
		seen[m.Digest] = true
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if b.Kind == furl.KindCall && fingerprint.IsRandomID(b.ID) {
				return true
			}
			if r.By != furl.Client {
				size += len(b.Text) + len(b.Args)
			}
		}
		if size >= ownBytes {
			return true
		}
	}
	return false
}
