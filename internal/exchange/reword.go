package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// Some clients send a reply back reworded: they keep its calls and drop its text
// (LangChainGo), join its texts into one (any-llm and other translators between
// provider formats), or trim it. The digests of such a history differ from the log
// at each reply. A reply still matches if its calls have the same ids, or, without
// calls, if its text is the same apart from white space. furl sends what the client
// sends; the log keeps the model's reply.
//
// Some clients also give the calls other ids, often the model's without "_" or "-"
// (openclaw). Such a reply matches too, but it is recorded again as the client has
// it, because its results have the client's ids.

// findReworded returns the last record of the model's reply that follows the record
// at on the path, if m is that reply reworded; else 0.
func (t *tx) findReworded(at furl.Seq, m *furl.Message, like fingerprint.Likeness) furl.Seq {
	want, have := fingerprint.Reply{Likeness: like}, fingerprint.Reply{Likeness: like}
	if m.Role != furl.RoleAssistant || fingerprint.AddsNothing(m) || !want.Add(m) {
		return 0
	}
	st := t.Log().State()
	i, ok := st.Find(at)
	if !ok {
		return 0
	}
	for i++; i < st.Len(); i++ {
		seq, was := st.Message(i)
		if was.Role != furl.RoleAssistant && !was.HasOwn() || !have.Add(was) {
			return 0
		}
		if !fingerprint.AddsNothing(was) && have.Same(&want) {
			return seq
		}
	}
	return 0
}

// matchReworded continues the match of a history after pl, as far as its
// replies are reworded replies of the path. If there is such a reply, it sets
// in.chains to the chains of the log and returns true.
func (t *tx) matchReworded(in *incoming, pl position) bool {
	msgs, i := in.req.Messages, pl.matched
	n := len(msgs) - in.tailLen
	for i < n && fingerprint.AddsNothing(&msgs[i]) {
		i++
	}
	if i == n || msgs[i].Role != furl.RoleAssistant {
		return false // the usual case
	}
	chains := slices.Clone(in.chains)
	at, found := pl.lastMatched, false
	for ; i < n; i++ {
		next := furl.ChainAt(msgs, chains, i)
		if seqs := t.Index().ByChain[next]; len(seqs) > 0 && !fingerprint.AddsNothing(&msgs[i]) {
			at = onPath(t.Log().State(), seqs)
		} else if !fingerprint.AddsNothing(&msgs[i]) && !next.IsZero() {
			seq := t.findReworded(at, &msgs[i], fingerprint.SameCalls)
			if seq == 0 {
				break
			}
			at, next, found = seq, t.Log().At(seq).Chain, true
		}
		chains[i] = next
	}
	if !found {
		return false
	}
	for ; i < len(msgs); i++ {
		chains[i] = furl.ChainAt(msgs, chains, i)
	}
	in.chains, in.reworded = chains, true
	return true
}

// onPath returns the one of these messages that is on the current path, else the
// newest.
func onPath(st *furl.State, seqs []furl.Seq) furl.Seq {
	for _, seq := range slices.Backward(seqs) {
		if _, ok := st.Find(seq); ok {
			return seq
		}
	}
	return seqs[len(seqs)-1]
}

// maxCandidates is the largest number of sessions with the same start that are
// checked.
const maxCandidates = 8

// byFirstReply returns the session of a history whose first reply is in no
// session as sent. Among the sessions with the same start, it prefers the
// newest that has the reply reworded, else the newest without a reply. It
// returns nil if there is none. known is set if some sessions have the same start.
func (a *Sessions) byFirstReply(ctx context.Context, in *incoming) (_ *open.Session, known bool, _ error) {
	first := firstReply(in.req.Messages)
	if first < 1 || in.chains[first-1].IsZero() || in.req.Messages[first].HasCompaction() {
		return nil, false, nil // the questions before a compaction do not identify it
	}
	found, err := a.Match(ctx, in.chains[first-1:first], maxCandidates)
	if err != nil {
		return nil, false, fmt.Errorf("match start of history: %w", err)
	}
	var copied, asked *open.Session
	elsewhere := false // another process may be recording the reply
	for _, f := range found {
		s, err := a.OpenCached(ctx, f.Session)
		if err != nil {
			continue // deleted meanwhile
		}
		if in.hints.Hint == "" && s.Meta().Settings[settingPartial] != "" {
			continue // it may start like other conversations
		}
		known = true
		var meta storage.Meta
		var ok, asks bool
		a.read(s, func(t *tx) {
			meta = t.Meta()
			ok = t.hasFirstReply(f.Seq, in, first)
			asks = !ok && t.awaitsReply(in)
			elsewhere = elsewhere || asks && !t.Opened && t.isRecent(furl.Seq(t.Log().Len()))
			asks = asks && asked == nil
		})
		switch {
		case !ok:
			if asks {
				asked = s
			}
		case meta.ForkOf == "" || f.Seq > meta.ForkAt:
			a.cacheReworded(s, in)
			return s, true, nil
		case copied == nil:
			copied = s // a fork; the original has it too and is preferred
		}
	}
	if copied == nil && elsewhere {
		if s, err := a.awaitFirstReply(ctx, in); err != nil || s != nil {
			return s, true, err
		}
	}
	return cmp.Or(copied, asked), known, nil
}

// cacheReworded caches the session of a history that matched by its reworded first
// reply, if the reply has a call. Call ids are unique, so the match is certain.
func (a *Sessions) cacheReworded(s *open.Session, in *incoming) {
	first := firstReply(in.req.Messages)
	if !slices.ContainsFunc(in.req.Messages[first].Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall }) {
		return
	}
	a.Clients().SetReworded(a.Tenant(), in.chains[first], s.ID())
}

// byCachedReworded returns the cached session of a history whose first reply is
// reworded, nil if there is none. The client sends the same rewording with each
// request. No session can have that rewording recorded, or the history would have
// matched it.
func (a *Sessions) byCachedReworded(ctx context.Context, in *incoming) (*open.Session, error) {
	first := firstReply(in.req.Messages)
	if first < 1 {
		return nil, nil
	}
	id, ok := a.Clients().OfReworded(a.Tenant(), in.chains[first])
	if !ok {
		return nil, nil
	}
	s, err := a.OpenCached(ctx, id)
	if errors.Is(err, storage.ErrNoSession) {
		a.Clients().ForgetReworded(a.Tenant(), in.chains[first])
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if hint := s.Meta().Hint; in.hints.Hint != "" && hint != "" && hint != in.hints.Hint {
		return nil, nil
	}
	return s, nil
}

// hasFirstReply reports whether the history may have started in the session:
// the hints do not differ, and the session has the first reply, reworded or
// not.
func (t *tx) hasFirstReply(at furl.Seq, in *incoming, first int) bool {
	if hint := t.Meta().Hint; in.hints.Hint != "" && hint != "" && hint != in.hints.Hint {
		return false
	}
	return t.findReworded(at, &in.req.Messages[first], fingerprint.SameIDs) != 0
}

// markReworded sets p.reworded: the messages of the path that the client has
// with other blocks, and, if edited is set, those of the user with other texts.
// Reductions of their blocks cannot be applied to the request's message.
func (p *pairing) markReworded(s *furl.State, msgs []furl.Message, edited bool) {
	for i, j := range p.to {
		if j < 0 {
			continue
		}
		_, m := s.Message(i)
		if m.Role == furl.RoleAssistant && !sameBlocks(m, &msgs[j]) || edited && m.Role != furl.RoleAssistant && m.Digest != msgs[j].Digest && !s.Chain(i+1).IsZero() {
			if p.reworded == nil {
				p.reworded = make(map[int]bool)
			}
			p.reworded[i], p.identity = true, false
		}
	}
}

// sameBlocks reports whether two messages have blocks of the same kinds and ids,
// apart from thinking. Texts may differ.
func sameBlocks(a, b *furl.Message) bool {
	says := func(m *furl.Message) (list []*furl.Block) {
		for i := range m.Blocks {
			if m.Blocks[i].Kind != furl.KindThinking {
				list = append(list, &m.Blocks[i])
			}
		}
		return list
	}
	return slices.EqualFunc(says(a), says(b), func(x, y *furl.Block) bool { return x.Kind == y.Kind && x.ID == y.ID })
}

// shownAsSent returns a message of the request as a shown message, unchanged.
func shownAsSent(m *furl.Message, index int) furl.Shown {
	sh := furl.Shown{Index: index, Msg: m}
	for i := range m.Blocks {
		sh.Blocks = append(sh.Blocks, furl.ShownBlock{Block: &m.Blocks[i]})
	}
	return sh
}
