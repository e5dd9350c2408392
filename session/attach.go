package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// Hints are what a request says about its session beside its messages.
type Hints struct {
	// Session is furl's id of the session, if the client was told one.
	// There is such a session from then on.
	Session furl.SessionID
	// Hint is the client's own id of the session. Equal ones bind, different
	// ones separate.
	Hint string
	// Client names the agent.
	Client string
}

// match returns the session that a request belongs to, a new one if there is none
// (design.md, "Matching"): the one that a hint names, or that holds the
// longest part of the history. A request without a hint and without a message
// of the assistant begins a session, as others begin with "hi" too, unless it is
// one that has begun a session before and was not answered; see opening.go.
func (a *Sessions) match(ctx context.Context, in *arrival) (*Session, error) {
	req, h := in.req, in.hints
	if h.Session != "" {
		if !storage.ValidID(h.Session) {
			return nil, fmt.Errorf("session %q: not a valid id", h.Session)
		}
		s, err := a.now(ctx, h.Session)
		if errors.Is(err, storage.ErrNoSession) {
			return a.create(h.Session, storage.Meta{Hint: h.Hint, Client: h.Client, Format: req.Format}), nil
		}
		return s, err
	}
	if h.Hint != "" {
		s, err := a.byHint(ctx, h.Hint)
		if err == nil || !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
	}
	if s := a.ending(in); s != nil {
		s, err := a.now(ctx, s.key.Session)
		if !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
	}
	s, err := a.repeated(ctx, in)
	if err == nil && s == nil {
		s, err = a.seenReworded(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byHistory(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byReply(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byAnswer(ctx, in)
	}
	if err != nil || s != nil {
		return s, err
	}
	return a.begun(h, req.Format), nil
}

// begun makes a session for a request. Of several requests with one new hint
// at the same time the first makes it.
func (a *Sessions) begun(h Hints, format furl.Format) *Session {
	id := a.o.NewID()
	if h.Hint != "" {
		key := hintKey{a.tenant, h.Hint}
		a.mu.Lock()
		was, ok := a.hints[key]
		if !ok {
			a.remember(key, id)
		}
		a.mu.Unlock()
		if ok {
			return a.get(furl.SessionKey{Tenant: a.tenant, Session: was})
		}
	}
	return a.create(id, storage.Meta{Hint: h.Hint, Client: h.Client, Format: format})
}

// maxHints bounds how many hints are remembered; the store has them all.
const maxHints = 4096

// remember keeps which session a hint names. The lock is held.
func (a *shared) remember(key hintKey, id furl.SessionID) {
	if len(a.hints) >= maxHints {
		clear(a.hints)
	}
	a.hints[key] = id
}

func (a *Sessions) byHint(ctx context.Context, hint string) (*Session, error) {
	key := hintKey{a.tenant, hint}
	a.mu.Lock()
	id, ok := a.hints[key]
	a.mu.Unlock()
	if ok {
		s, err := a.now(ctx, id)
		if !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
		// It was begun and has no record yet, or was deleted elsewhere.
		return a.create(id, storage.Meta{Hint: hint}), nil
	}
	for info, err := range a.store.Sessions(ctx, a.tenant, storage.SessionQuery{Hint: hint, Limit: 1}) {
		if err != nil {
			a.storeError(ctx, err)
			return nil, fmt.Errorf("find the session of a hint: %w", err)
		}
		a.mu.Lock()
		a.remember(key, info.Session)
		a.mu.Unlock()
		return a.Open(ctx, info.Session)
	}
	return nil, fmt.Errorf("session of a hint: %w", storage.ErrNoSession)
}

// byHistory finds the session that holds the longest part of a history, at
// least up to a message of the assistant; nil if there is none.
func (a *Sessions) byHistory(ctx context.Context, in *arrival) (*Session, error) {
	chains := usable(in.req.Messages, in.chains)
	// Most histories are known but for their last message, so the end is asked
	// for first, and by itself: shorter beginnings may be in many sessions.
	for size, end := 2, len(chains); end > 0; size *= 8 {
		from := max(0, end-size)
		found, err := a.store.Match(ctx, a.tenant, chains[from:end], 64)
		if err != nil {
			a.storeError(ctx, err)
			return nil, fmt.Errorf("match a history: %w", err)
		}
		id, err := a.choose(ctx, chains[from:end], found, in.hints)
		if err != nil {
			return nil, err
		}
		if id != "" {
			return a.Open(ctx, id)
		}
		end = from
	}
	return nil, nil
}

// usable gives the chains by which a history may be found: those that hold a
// message of the assistant, in order and each once.
func usable(msgs []furl.Message, chains []furl.Digest) []furl.Digest {
	first := firstAnswer(msgs)
	if first < 0 {
		return nil
	}
	return slices.Compact(slices.Clone(chains[first:]))
}

// firstAnswer is the index of the first message of the assistant that says
// something, -1 if there is none.
func firstAnswer(msgs []furl.Message) int {
	for i := range msgs {
		if msgs[i].Role == furl.RoleAssistant && !bare(&msgs[i]) {
			return i
		}
	}
	return -1
}

// choose gives the session among those found that the longest chain is in,
// "" if none may be used.
func (a *Sessions) choose(ctx context.Context, chains []furl.Digest, found []storage.Matched, h Hints) (furl.SessionID, error) {
	metas := make(map[furl.SessionID]storage.Meta)
	for _, chain := range slices.Backward(chains) {
		var copied furl.SessionID
		for _, f := range found {
			if f.Chain != chain {
				continue
			}
			meta, ok := metas[f.Session]
			if !ok {
				var err error
				if meta, err = a.metaOf(ctx, f.Session); err != nil {
					return "", err
				}
				metas[f.Session] = meta
			}
			if h.Hint != "" && meta.Hint != "" && meta.Hint != h.Hint {
				continue
			}
			if meta.ForkOf != "" && f.Seq <= meta.ForkAt {
				copied = f.Session // the original has it too
				continue
			}
			return f.Session, nil
		}
		if copied != "" {
			return copied, nil
		}
	}
	return "", nil
}

// metaOf is what is known about a session, without reading it.
func (a *Sessions) metaOf(ctx context.Context, id furl.SessionID) (storage.Meta, error) {
	a.mu.Lock()
	c := a.open[furl.SessionKey{Tenant: a.tenant, Session: id}]
	a.mu.Unlock()
	if c != nil {
		return c.s.Meta(), nil
	}
	for info, err := range a.store.Sessions(ctx, a.tenant, storage.SessionQuery{Prefix: string(id)}) {
		if err != nil {
			return storage.Meta{}, fmt.Errorf("read session %s: %w", id, err)
		}
		if info.Session == id {
			return info.Meta, nil
		}
	}
	return storage.Meta{}, nil
}

// arrival is a request's history as it attaches to a session.
type arrival struct {
	req    *protocol.Request
	chains []furl.Digest
	hints  Hints
	recall RecallMode
	// Filled in by attach.
	pairs   pairing
	fresh   int    // messages that were new
	tail    int    // messages at the end that are not on the path
	learned string // the session's settingVolatile from now on; "": as it is
	// reworded: the client has some answers in other words, and the chains are
	// those of the log.
	reworded bool
}

// attach makes the head of the log the record after which the request's
// history ends: it finds the place, goes there, and appends what is new. The
// session is locked.
func (s *Session) attach(in *arrival, c furl.Counter) error {
	s.places.follow(s.log)
	in.learned = ""
	pl := s.place(in)
	msgs := in.req.Messages[:len(in.req.Messages)-in.tail]
	old, matched := s.log.Head(), pl.matched
	if pl.at != old {
		var err error
		if matched, err = s.goTo(pl, in.chains, msgs); err != nil {
			return err
		}
	}
	shared := s.log.Head()
	in.fresh = len(msgs) - matched
	for i := range msgs[matched:] {
		if _, err := s.addMessage(keepable(&msgs[matched+i]), c); err != nil {
			return fmt.Errorf("append message %d of the request: %w", matched+i, err)
		}
	}
	if old != shared && old != 0 && in.fresh > 0 {
		s.takeOver(old)
	}
	if err := s.changedBy(in, c); err != nil {
		return err
	}
	s.describe(in)
	return nil
}

// place finds where a history goes on, and what at its end does not count.
func (s *Session) place(in *arrival) place {
	in.tail = s.moving(in.req.Messages)
	find := func() place {
		n := len(in.req.Messages) - in.tail
		return s.places.find(s.log, in.chains[:n], in.req.Messages[:n])
	}
	pl := find()
	if was := in.tail; pl.at != s.log.Head() {
		if s.learnTail(in, pl); in.tail != was {
			pl = find()
		}
		if s.reword(in, pl) {
			pl = find()
		}
	}
	return pl
}

// changedBy records what the client shows otherwise than it was recorded. The
// tail of the request that is not on the path is recorded beside it before.
func (s *Session) changedBy(in *arrival, c furl.Counter) error {
	msgs := in.req.Messages
	if in.tail > 0 && !s.hasTail(in) {
		if err := s.aside(msgs[len(msgs)-in.tail:], c); err != nil {
			return err
		}
	}
	st := s.log.State()
	s.repair(in)
	cleared, again := s.places.changes(st, in.pairs, msgs, c)
	for _, seq := range again {
		if _, err := s.add(furl.Client, &furl.Restoration{Of: seq, Hold: furl.Release}); err != nil {
			return err
		}
	}
	if cleared != nil {
		s.sized(cleared)
		if _, err := s.add(furl.Client, cleared); err != nil {
			return fmt.Errorf("record what the client changed: %w", err)
		}
	}
	return nil
}

// repair pairs the request with the path as it is now.
func (s *Session) repair(in *arrival) {
	st, msgs := s.log.State(), in.req.Messages
	if in.pairs = pair(st, in.chains, msgs); in.reworded {
		in.pairs.mark(st, msgs)
	}
}

// hasTail reports whether the end of the request is recorded already, as it is
// when the request is sent again.
func (s *Session) hasTail(in *arrival) bool {
	return len(s.places.ends[in.chains[len(in.chains)-1]]) > 0
}

// goTo rewinds to a place and gives how much of the history is on the path
// then: a place within a step cannot be gone on from, so what the step has is
// appended once more.
func (s *Session) goTo(pl place, chains []furl.Digest, msgs []furl.Message) (int, error) {
	if _, err := s.log.Rewind(pl.at, s.all.o.Now(), furl.Client); err != nil {
		return 0, err
	}
	st := s.log.State()
	if st.Len() == 0 {
		return 0, nil
	}
	end := st.Chain(st.Len())
	for i := pl.matched - 1; i >= 0; i-- {
		if chains[i] == end && !bare(&msgs[i]) {
			return i + 1, nil
		}
	}
	// The step before the place begins within one of the request's messages.
	_, err := s.log.Rewind(0, s.all.o.Now(), furl.Client)
	return 0, err
}

// sized fills in how large the context is before and after a reduction that no
// policy has made.
func (s *Session) sized(red *furl.Reduction) {
	if s.meta.Model == "" {
		return
	}
	b, before, _ := s.budgetFor(fitIn{name: s.meta.Model})
	if st, err := s.log.State().With(red); err == nil {
		red.Before, red.After, red.Scale = b.Size, b.After(before, st.View(b.Model)).Size, b.Scale
	}
}

// describe notes what the request tells about the session.
func (s *Session) describe(in *arrival) {
	m := cloneMeta(s.meta)
	if m.Hint == "" && s.meta.ForkOf == "" {
		m.Hint = in.hints.Hint
	}
	if m.Client == "" {
		m.Client = in.hints.Client
	}
	if m.Format == "" {
		m.Format = in.req.Format
	}
	if in.learned != "" && in.learned != m.Settings[settingVolatile] {
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[settingVolatile] = in.learned
		s.newMeta = &m
	}
	if m.Hint != s.meta.Hint || m.Client != s.meta.Client || m.Format != s.meta.Format {
		s.newMeta = &m
	}
}

// keepable gives a message of a request with memory of its own: decoded
// messages share the body's, which would stay for as long as the session.
func keepable(m *furl.Message) *furl.Message {
	kept := *m
	kept.Raw = slices.Clone(m.Raw)
	own(&kept) // texts have memory of their own
	return &kept
}
