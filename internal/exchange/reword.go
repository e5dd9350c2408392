package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/gist"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// Some clients send an answer back in words of their own: they keep its calls
// and drop what was said beside them (LangChainGo), join its texts into one
// (any-llm, and whoever puts one provider's format into another's), or trim it.
// The digests of such a history leave the log at each answer. It is the same
// answer all the same if its calls are, which have ids, or, where it has none,
// if its words are, white space aside. What the client sends goes out as it
// came; the log keeps what the model said.
//
// Some clients also give the calls ids of their own, often the model's without
// "_" or "-" (openclaw). Such an answer is recognized where it is, but it is
// recorded as the client has it: its results have the client's ids.

// answeredAs finds the end of the model's answer after a message of the path
// that a message of the client's is in other words; 0 if it is none.
func (t *tx) answeredAs(at furl.Seq, m *furl.Message, like gist.Likeness) furl.Seq {
	want, have := gist.Gist{Like: like}, gist.Gist{Like: like}
	if m.Role != furl.RoleAssistant || gist.Bare(m) || !want.Add(m) {
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
		if !gist.Bare(was) && have.Same(&want) {
			return seq
		}
	}
	return 0
}

// reword goes on along the log from where the history's digests leave it, as
// far as its answers are those of the path in other words. It is false if
// there is no such answer; else the chains of the request are those of the log.
func (t *tx) reword(in *arrival, pl place) bool {
	msgs, i := in.req.Messages, pl.matched
	n := len(msgs) - in.tail
	for i < n && gist.Bare(&msgs[i]) {
		i++
	}
	if i == n || msgs[i].Role != furl.RoleAssistant {
		return false // as nearly all are
	}
	chains := slices.Clone(in.chains)
	var chain furl.Digest
	if i > 0 {
		chain = chains[i-1]
	}
	at, found := pl.message, false
	for ; i < n; i++ {
		next := msgs[i].Extend(chain)
		if seqs := t.places.ends[next]; len(seqs) > 0 && !gist.Bare(&msgs[i]) {
			at = onPath(t.Log().State(), seqs)
		} else if !gist.Bare(&msgs[i]) && !next.IsZero() {
			seq := t.answeredAs(at, &msgs[i], gist.SameCalls)
			if seq == 0 {
				break
			}
			at, next, found = seq, t.Log().At(seq).Chain, true
		}
		chain, chains[i] = next, next
	}
	if !found {
		return false
	}
	for ; i < len(msgs); i++ {
		chain = msgs[i].Extend(chain)
		chains[i] = chain
	}
	in.chains, in.reworded = chains, true
	return true
}

// onPath gives the one of these messages that is on the current path, else the
// newest.
func onPath(st *furl.State, seqs []furl.Seq) furl.Seq {
	for _, seq := range slices.Backward(seqs) {
		if _, ok := st.Find(seq); ok {
			return seq
		}
	}
	return seqs[len(seqs)-1]
}

// rewordedKey is the beginning of a tenant's history.
type rewordedKey struct {
	tenant furl.Tenant
	chain  furl.Digest
}

// maxAlike is how many sessions that begin like a history are looked at.
const maxAlike = 8

// byAnswer finds the session of a history whose first answer no session has: among
// those that begin like it, the newest with that answer in other words, else the
// newest that waits for its first answer. It is nil if there is none.
func (a *Sessions) byAnswer(ctx context.Context, in *arrival) (*session.Session, error) {
	first := firstAnswer(in.req.Messages)
	if first < 1 || in.chains[first-1].IsZero() {
		return nil, nil
	}
	found, err := a.Match(ctx, in.chains[first-1:first], maxAlike)
	if err != nil {
		return nil, fmt.Errorf("match the beginning of a history: %w", err)
	}
	var copied, asked *session.Session
	for _, f := range found {
		s, err := a.Recent(ctx, f.Session)
		if err != nil {
			continue // deleted meanwhile
		}
		var meta storage.Meta
		var ok, asks bool
		a.read(s, func(t *tx) {
			meta = t.Meta()
			ok = t.began(f.Seq, in, first)
			asks = !ok && asked == nil && t.asks(in)
		})
		switch {
		case !ok:
			if asks {
				asked = s
			}
		case meta.ForkOf == "" || f.Seq > meta.ForkAt:
			a.seeReworded(s, in)
			return s, nil
		case copied == nil:
			copied = s // the original has it too
		}
	}
	return cmp.Or(copied, asked), nil
}

// seeReworded remembers the session of a history that was found by its first
// answer in other words, if that has a call: its id is in no other answer.
func (a *Sessions) seeReworded(s *session.Session, in *arrival) {
	first := firstAnswer(in.req.Messages)
	if !slices.ContainsFunc(in.req.Messages[first].Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall }) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.reworded) >= maxHints {
		clear(a.reworded)
	}
	a.reworded[rewordedKey{a.Tenant(), in.chains[first]}] = s.ID()
}

// seenReworded gives the session in which a history was found by its first answer
// before: its client has the same words in each request. No session holds those
// words themselves, or it would have been found by them then. It is nil if there
// is none.
func (a *Sessions) seenReworded(ctx context.Context, in *arrival) (*session.Session, error) {
	first := firstAnswer(in.req.Messages)
	if first < 1 {
		return nil, nil
	}
	key := rewordedKey{a.Tenant(), in.chains[first]}
	a.mu.Lock()
	id, ok := a.reworded[key]
	a.mu.Unlock()
	if !ok {
		return nil, nil
	}
	s, err := a.Recent(ctx, id)
	if errors.Is(err, storage.ErrNoSession) {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.reworded, key)
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

// began reports whether the session is one in which the history may have
// begun: its client is not another, and it has the first answer in any words.
func (t *tx) began(at furl.Seq, in *arrival, first int) bool {
	if hint := t.Meta().Hint; in.hints.Hint != "" && hint != "" && hint != in.hints.Hint {
		return false
	}
	return t.answeredAs(at, &in.req.Messages[first], gist.SameIDs) != 0
}

// mark notes which messages of the path the client has in other blocks: what
// is done to a block of theirs has no counterpart in the request.
func (p *pairing) mark(s *furl.State, msgs []furl.Message) {
	for i, j := range p.to {
		if j < 0 {
			continue
		}
		if _, m := s.Message(i); m.Role == furl.RoleAssistant && !sameBlocks(m, &msgs[j]) {
			if p.reworded == nil {
				p.reworded = make(map[int]bool)
			}
			p.reworded[i], p.same = true, false
		}
	}
}

// sameBlocks reports whether two messages have the same blocks, thinking aside,
// in whatever words.
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

// asSent shows a message of the request as it came.
func asSent(m *furl.Message, index int) furl.Shown {
	sh := furl.Shown{Index: index, Msg: m}
	for i := range m.Blocks {
		sh.Blocks = append(sh.Blocks, furl.ShownBlock{Block: &m.Blocks[i]})
	}
	return sh
}
