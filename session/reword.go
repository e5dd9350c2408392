package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/furlhq/furl"
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

// likeness says how alike two answers must be.
type likeness int

const (
	sameCalls likeness = iota // the calls have the same ids
	sameIDs                   // the ids have the same letters and digits
	otherIDs                  // the calls have the same names and arguments
)

// gist is what an answer is known by in other words.
type gist struct {
	like  likeness
	calls int
	chain furl.Digest // of the calls
	words strings.Builder
}

// add adds a message to the gist. It is false for what is not known so: media,
// blocks of unknown kind, calls without an id.
func (g *gist) add(m *furl.Message) bool {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Own || b.Kind == furl.KindThinking:
		case b.Kind == furl.KindText:
			for word := range strings.FieldsSeq(b.Text) {
				g.words.WriteString(word)
			}
		case b.Kind == furl.KindCall && b.ID != "":
			own := *b
			own.ID = g.like.id(b.ID)
			call := furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{own}, Raw: m.Raw}
			g.calls, g.chain = g.calls+1, call.Extend(g.chain)
		default:
			return false
		}
	}
	return true
}

// id gives what of a call's id counts.
func (l likeness) id(id string) string {
	switch l {
	case sameIDs:
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, id)
	case otherIDs:
		return ""
	}
	return id
}

func (g *gist) same(o *gist) bool {
	if g.calls > 0 || o.calls > 0 {
		return g.calls == o.calls && g.chain == o.chain
	}
	return g.words.Len() > 0 && g.words.String() == o.words.String()
}

// answeredAs finds the end of the model's answer after a message of the path
// that a message of the client's is in other words; 0 if it is none.
func (s *Session) answeredAs(at furl.Seq, m *furl.Message, like likeness) furl.Seq {
	want, have := gist{like: like}, gist{like: like}
	if m.Role != furl.RoleAssistant || bare(m) || !want.add(m) {
		return 0
	}
	st := s.log.State()
	i, ok := st.Find(at)
	if !ok {
		return 0
	}
	for i++; i < st.Len(); i++ {
		seq, was := st.Message(i)
		if was.Role != furl.RoleAssistant && !was.HasOwn() || !have.add(was) {
			return 0
		}
		if !bare(was) && have.same(&want) {
			return seq
		}
	}
	return 0
}

// reword goes on along the log from where the history's digests leave it, as
// far as its answers are those of the path in other words. It is false if
// there is no such answer; else the chains of the request are those of the log.
func (s *Session) reword(in *arrival, pl place) bool {
	msgs, i := in.req.Messages, pl.matched
	n := len(msgs) - in.tail
	for i < n && bare(&msgs[i]) {
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
		if seqs := s.places.ends[next]; len(seqs) > 0 && !bare(&msgs[i]) {
			at = onPath(s.log.State(), seqs)
		} else if !bare(&msgs[i]) && !next.IsZero() {
			seq := s.answeredAs(at, &msgs[i], sameCalls)
			if seq == 0 {
				break
			}
			at, next, found = seq, s.log.At(seq).Chain, true
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

// maxAlike is how many sessions that begin like a history are looked at.
const maxAlike = 8

// byAnswer finds the session of a history whose first answer no session has: among
// those that begin like it, the newest with that answer in other words, else the
// newest that waits for its first answer. It is nil if there is none.
func (a *Sessions) byAnswer(ctx context.Context, in *arrival) (*Session, error) {
	first := firstAnswer(in.req.Messages)
	if first < 1 || in.chains[first-1].IsZero() {
		return nil, nil
	}
	found, err := a.store.Match(ctx, a.tenant, in.chains[first-1:first], maxAlike)
	if err != nil {
		a.storeError(ctx, err)
		return nil, fmt.Errorf("match the beginning of a history: %w", err)
	}
	var copied, asked *Session
	for _, f := range found {
		s, err := a.now(ctx, f.Session)
		if err != nil {
			continue // deleted meanwhile
		}
		meta, ok := s.began(f.Seq, in, first)
		switch {
		case !ok:
			if asked == nil && s.asks(in) {
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
func (a *Sessions) seeReworded(s *Session, in *arrival) {
	first := firstAnswer(in.req.Messages)
	if !slices.ContainsFunc(in.req.Messages[first].Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall }) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.reworded) >= maxHints {
		clear(a.reworded)
	}
	a.reworded[tipKey{a.tenant, in.chains[first]}] = s.key.Session
}

// seenReworded gives the session in which a history was found by its first answer
// before: its client has the same words in each request. No session holds those
// words themselves, or it would have been found by them then. It is nil if there
// is none.
func (a *Sessions) seenReworded(ctx context.Context, in *arrival) (*Session, error) {
	first := firstAnswer(in.req.Messages)
	if first < 1 {
		return nil, nil
	}
	key := tipKey{a.tenant, in.chains[first]}
	a.mu.Lock()
	id, ok := a.reworded[key]
	a.mu.Unlock()
	if !ok {
		return nil, nil
	}
	s, err := a.now(ctx, id)
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
func (s *Session) began(at furl.Seq, in *arrival, first int) (storage.Meta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.hints.Hint != "" && s.meta.Hint != "" && s.meta.Hint != in.hints.Hint {
		return storage.Meta{}, false
	}
	return s.meta, s.answeredAs(at, &in.req.Messages[first], sameIDs) != 0
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
