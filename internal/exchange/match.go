package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/gist"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// match returns the session that a request belongs to, a new one if there is none
// (design.md, "Matching"): the one that a hint names, or that holds the
// longest part of the history. A request without a hint and without a message
// of the assistant begins a session, as others begin with "hi" too, unless it is
// one that has begun a session before and was not answered; see opening.go.
func (a *Sessions) match(ctx context.Context, in *arrival) (*session.Session, error) {
	req, h := in.req, in.hints
	if h.Session != "" {
		if !storage.ValidID(h.Session) {
			return nil, fmt.Errorf("session %q: not a valid id", h.Session)
		}
		s, err := a.Recent(ctx, h.Session)
		if errors.Is(err, storage.ErrNoSession) {
			return a.CreateAs(h.Session, storage.Meta{Hint: h.Hint, Client: h.Client, Format: req.Format}), nil
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
		s, err := a.Recent(ctx, s.ID())
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
func (a *Sessions) begun(h protocol.Hints, format furl.Format) *session.Session {
	id := a.Options().NewID()
	if h.Hint != "" {
		key := hintKey{a.Tenant(), h.Hint}
		a.mu.Lock()
		was, ok := a.hints[key]
		if !ok {
			a.remember(key, id)
		}
		a.mu.Unlock()
		if ok {
			return a.CreateAs(was, storage.Meta{Hint: h.Hint, Client: h.Client, Format: format})
		}
	}
	return a.CreateAs(id, storage.Meta{Hint: h.Hint, Client: h.Client, Format: format})
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

func (a *Sessions) byHint(ctx context.Context, hint string) (*session.Session, error) {
	key := hintKey{a.Tenant(), hint}
	a.mu.Lock()
	id, ok := a.hints[key]
	a.mu.Unlock()
	if ok {
		s, err := a.Recent(ctx, id)
		if !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
		// It was begun and has no record yet, or was deleted elsewhere.
		return a.CreateAs(id, storage.Meta{Hint: hint}), nil
	}
	for info, err := range a.List(ctx, storage.SessionQuery{Hint: hint, Limit: 1}) {
		if err != nil {
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
func (a *Sessions) byHistory(ctx context.Context, in *arrival) (*session.Session, error) {
	chains := usable(in.req.Messages, in.chains)
	// Most histories are known but for their last message, so the end is asked
	// for first, and by itself: shorter beginnings may be in many sessions.
	for size, end := 2, len(chains); end > 0; size *= 8 {
		from := max(0, end-size)
		found, err := a.Match(ctx, chains[from:end], 64)
		if err != nil {
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
		if msgs[i].Role == furl.RoleAssistant && !gist.Bare(&msgs[i]) {
			return i
		}
	}
	return -1
}

// choose gives the session among those found that the longest chain is in,
// "" if none may be used.
func (a *Sessions) choose(ctx context.Context, chains []furl.Digest, found []storage.Matched, h protocol.Hints) (furl.SessionID, error) {
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
				if meta, err = a.MetaOf(ctx, f.Session); err != nil {
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

// ending gives the session in memory from whose end a history goes on with no
// more than words and results; nil if there is none. No session has a longer
// part of it.
func (a *Sessions) ending(in *arrival) *session.Session {
	msgs := in.req.Messages
	first := firstAnswer(msgs)
	if first < 0 {
		return nil
	}
	for i := len(msgs) - 1; i >= first; i-- {
		if gist.Bare(&msgs[i]) {
			continue
		}
		if s := a.EndingAt(in.chains[i]); s != nil {
			if hint := s.Meta().Hint; in.hints.Hint != "" && hint != "" && hint != in.hints.Hint {
				return nil
			}
			return s
		}
		if msgs[i].Role == furl.RoleAssistant {
			return nil
		}
	}
	return nil
}
