package exchange

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// A client without an id may change the front of its history too. Then no session
// has a start of the history, and only the messages after the front tell which
// session it continues. Two conversations may have equal short texts, and the wrong
// session would mix them, so a new session is started unless the run of messages
// belongs to one session without doubt:
//
//   - It has a reply that was recorded here, or leads to one, with a call whose id a
//     provider made at random. Or:
//   - It has such a reply with any content, and enough different content, ends with the
//     session's newest message of the client, the request continues that with at most one
//     reply, its instructions and tools are the same, and no other session has such a run.
//
// First the sessions in memory are compared. If none has such a run, the stored sessions
// that were used last are read and compared too, because an agent may be resumed after a
// restart of the process.

const (
	// maxListed is how many stored sessions are looked at, and maxOpened and maxOpenedBytes
	// how many of them are read. The bytes are those of messages.
	maxListed, maxOpened, maxOpenedBytes = 64, 8, 64 << 20
	// listedFor is how long the list of these sessions is kept, and maxListing how long a
	// request may wait for it. A store that takes longer is not asked again for slowFor.
	listedFor, maxListing, slowFor = 5 * time.Second, 200 * time.Millisecond, 10 * time.Minute
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
func (a *Sessions) byOverlap(in *incoming, ids bool) *open.Session {
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
	var best *open.Session
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

// byStoredOverlap is byOverlap with the sessions that openNewest reads.
func (a *Sessions) byStoredOverlap(ctx context.Context, in *incoming) (*open.Session, error) {
	if opened, err := a.openNewest(ctx, in); !opened || err != nil {
		return nil, err
	}
	if s := a.byOverlap(in, true); s != nil {
		return s, nil
	}
	return a.byOverlap(in, false), nil
}

// openNewest reads the stored sessions that were used last and that a history may continue
// by a run of its messages. It returns false if there is none that was not in memory.
func (a *Sessions) openNewest(ctx context.Context, in *incoming) (bool, error) {
	msgs := in.req.Messages
	if in.hints.Hint != "" || firstReply(msgs) < 0 || lastCompaction(msgs) >= 0 || len(msgs) < ownMessages {
		return false, nil
	}
	newest, err := a.listNewest(ctx)
	if err != nil {
		return false, err
	}
	known := make(map[furl.SessionID]bool)
	for _, s := range a.InMemory() {
		known[s.ID()] = true
	}
	opened, size := 0, int64(0)
	for i := range newest {
		info := &newest[i]
		if known[info.Session] || !mayContinue(&info.Meta, in) || size+info.Bytes > maxOpenedBytes {
			continue
		}
		if _, err := a.OpenCached(ctx, info.Session); err != nil {
			continue // deleted meanwhile, or damaged
		}
		size += info.Bytes
		if opened++; opened == maxOpened {
			break
		}
	}
	return opened > 0, nil
}

// listNewest returns those of the sessions stored last that have no id of the client and
// enough messages. Stores may read all sessions for it, so the list is kept for a moment.
// Sessions that this process uses meanwhile are in memory.
func (a *Sessions) listNewest(ctx context.Context) ([]storage.SessionInfo, error) {
	n, ok := a.Clients().Newest(a.Tenant())
	if ok && time.Now().Before(n.Until) {
		return n.List, nil
	}
	n = clients.Newest{Until: time.Now().Add(listedFor)}
	limited, cancel := context.WithTimeout(ctx, maxListing)
	defer cancel()
	for info, err := range a.Store().Sessions(limited, a.Tenant(), storage.SessionQuery{Limit: maxListed}) {
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			n = clients.Newest{Until: time.Now().Add(slowFor)}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list newest sessions: %w", err)
		}
		if info.Hint == "" && info.Messages >= ownMessages {
			info.Meta = storage.Meta{Format: info.Format, Client: info.Client} // no titles and notes in memory
			n.List = append(n.List, info)
		}
	}
	a.Clients().SetNewest(a.Tenant(), n)
	return n.List, nil
}

// mayContinue reports whether a session without an id has the format and the client of a
// request.
func mayContinue(meta *storage.Meta, in *incoming) bool {
	return meta.Hint == "" && meta.Format == in.req.Format && (meta.Client == "" || in.hints.Client == "" || meta.Client == in.hints.Client)
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
	if !found || !mayContinue(&meta, in) {
		return 0
	}
	if t.recallTools() == "" && !t.samePreamble(in) || !ids && t.recallTools() != "" {
		return 0
	}
	t.UpdateIndex()
	in = &incoming{req: in.req, chains: in.chains, hints: in.hints}
	in.tailLen = t.volatileTail(in.req.Messages)
	n := len(in.req.Messages) - in.tailLen
	pl := find(t.Change, in.chains[:n], in.req.Messages[:n])
	o := t.findOverlap(in, pl, func(o *overlap, t *tx, msgs []furl.Message) bool {
		if ids {
			return o.hasRandomID(t, msgs)
		}
		c := o.content(msgs)
		return o.hasRecordedReply(t, msgs) && c.messages >= ownMessages && c.bytes >= ownBytes && c.replies > 1 && t.continuesNewest(o, msgs)
	})
	if o == nil {
		return 0
	}
	return len(o.pairs)
}

// hasRandomID reports whether a run, or what it leads to, has a recorded reply with a call
// that has a random id.
func (o *overlap) hasRandomID(t *tx, msgs []furl.Message) bool {
	for _, p := range o.pairs {
		if hasRandomID(&msgs[p.index]) && t.isRecordedReply(p.last) {
			return true
		}
	}
	next := t.nextReply(o.pairs[0].last, msgs[o.pairs[0].index+1:])
	return next != nil && hasRandomID(next)
}

func hasRandomID(m *furl.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b furl.Block) bool {
		return b.Kind == furl.KindCall && fingerprint.IsRandomID(b.ID)
	})
}

// hasRecordedReply reports whether a run has a recorded reply, or leads to one that
// identifies the conversation.
func (o *overlap) hasRecordedReply(t *tx, msgs []furl.Message) bool {
	if slices.ContainsFunc(o.pairs, func(p overlapPair) bool { return t.isRecordedReply(p.last) }) {
		return true
	}
	next := t.nextReply(o.pairs[0].last, msgs[o.pairs[0].index+1:])
	return next != nil && identifies(next)
}

// identifies reports whether a reply is unlikely to be in two conversations.
func identifies(m *furl.Message) bool { return hasRandomID(m) || replySize(m) >= ownBytes }

func replySize(m *furl.Message) (n int) {
	for i := range m.Blocks {
		n += len(m.Blocks[i].Text) + len(m.Blocks[i].Args)
	}
	return n
}

// isRecordedReply reports whether a message is a reply that was recorded when the model gave
// it. The replies in the history that a client sends with its first request may be examples,
// which other conversations have too.
func (t *tx) isRecordedReply(seq furl.Seq) bool {
	for r := t.Log().At(seq); ; r = t.Log().At(r.Parent) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			return r.Seq != seq
		case *furl.Message:
			if b.Role != furl.RoleAssistant && !b.HasOwn() {
				return false
			}
		}
		if r.By == furl.Import {
			return true
		}
		if r.Parent == 0 {
			return false
		}
	}
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
func (a *Sessions) continues(ctx context.Context, in *incoming, at storage.Matched) bool {
	s, err := a.OpenCached(ctx, at.Session)
	if err != nil {
		return false
	}
	ok := false
	a.read(s, func(t *tx) {
		if at.Seq <= furl.Seq(t.Log().Len()) {
			next := t.nextReply(at.Seq, in.req.Messages[slices.Index(in.chains, at.Chain)+1:])
			ok = t.hasReplyUpTo(at.Seq) || next != nil && identifies(next) || t.isUnanswered(at.Seq) && t.isRecentRepeat()
		}
	})
	return ok
}

// nextReply returns the first reply in the rest of a history that has the messages up to a
// record, if it is a recorded reply after the record on the current path, reworded or not;
// nil if it is not. The messages of the client before the reply may be other ones.
func (t *tx) nextReply(after furl.Seq, rest []furl.Message) *furl.Message {
	next, st := firstReply(rest), t.Log().State()
	i, ok := st.Find(after)
	if next < 0 || !ok {
		return nil
	}
	for n := 0; n < maxReplyMessages && i+1 < st.Len(); i++ {
		seq, m := st.Message(i + 1)
		if m.Role != furl.RoleAssistant || !t.isRecordedReply(seq) {
			continue
		}
		before, _ := st.Message(i)
		if n++; t.findReworded(before, &rest[next], fingerprint.SameIDs) != 0 {
			return &rest[next]
		}
	}
	return nil
}

// isUnanswered reports whether a record is the last message of the current path, and no
// reply follows it: the request is repeated, or its reply was cut off.
func (t *tx) isUnanswered(seq furl.Seq) bool {
	st := t.Log().State()
	if st.Len() == 0 || len(t.Flights) > 0 {
		return false
	}
	last, m := st.Message(st.Len() - 1)
	return last == seq && m.Role != furl.RoleAssistant && !m.HasOwn()
}

// hasReplyUpTo reports whether the path to a record has a recorded reply, and enough
// different content in replies or a random id.
func (t *tx) hasReplyUpTo(seq furl.Seq) bool {
	seen, size, random, recorded := make(map[furl.Digest]bool), 0, false, false
	for ; seq != 0; seq = t.messageBefore(seq) {
		m, ok := t.Log().At(seq).Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant {
			continue
		}
		recorded = recorded || t.isRecordedReply(seq)
		random = random || hasRandomID(m)
		if !seen[m.Digest] {
			seen[m.Digest] = true
			size += replySize(m)
		}
		if recorded && (random || size >= ownBytes) {
			return true
		}
	}
	return false
}
