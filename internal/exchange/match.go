package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// match returns the session of a request (design.md, "Matching"): the session that
// a hint identifies, else the one that holds the longest part of the history, else
// a new one. A request without a hint and without a reply of the model starts a
// session, because other conversations start with "hi" too. The exception is a
// repeated first request without a reply; see firstrequest.go.
func (a *Sessions) match(ctx context.Context, in *incoming) (*open.Session, error) {
	req, h := in.req, in.hints
	in.chains, in.front, in.edited, in.reworded, in.partial = chainsIn(req), nil, false, false, false // of another session, if that was deleted
	if h.Session != "" {
		if !storage.ValidID(h.Session) {
			return nil, fmt.Errorf("invalid session id %q", h.Session)
		}
		s, err := a.OpenCached(ctx, h.Session)
		if errors.Is(err, storage.ErrNoSession) {
			return a.CreateAs(h.Session, newMeta(h, req.Format)), nil
		}
		return s, err
	}
	if h.Hint != "" {
		s, err := a.byHint(ctx, h.Hint)
		if err == nil || !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
	}
	if s, read := a.byHead(in); read {
		return s, nil
	} else if s != nil {
		s, err := a.OpenCached(ctx, s.ID())
		if !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
	}
	s, err := a.byRepeatedRequest(ctx, in)
	if err == nil && s == nil {
		s, err = a.byCachedReworded(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byReference(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byHistory(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byPendingReply(ctx, in)
	}
	if err == nil && s == nil {
		s = a.byOverlap(in, true)
	}
	known := false
	if err == nil && s == nil {
		s, known, err = a.byFirstReply(ctx, in)
	}
	if err == nil && s == nil {
		s, err = a.byAnswer(ctx, in)
	}
	if err == nil && s == nil {
		s = a.byOverlap(in, false)
	}
	if err == nil && s == nil {
		s, err = a.byStoredOverlap(ctx, in)
	}
	if err != nil || s != nil {
		return s, err
	}
	in.partial = startsPartial(in, known)
	return a.createFor(h, req.Format), nil
}

// createFor creates the session of a request. Concurrent requests with the same new
// hint get the same session.
func (a *Sessions) createFor(h protocol.Hints, format furl.Format) *open.Session {
	id := a.Options().NewID()
	if h.Hint != "" {
		id = a.Clients().HintOr(a.Tenant(), h.Hint, id)
	}
	return a.CreateAs(id, newMeta(h, format))
}

// newMeta returns the metadata of a session that a request starts.
func newMeta(h protocol.Hints, format furl.Format) storage.Meta {
	return storage.Meta{Hint: h.Hint, Parent: h.Parent, Client: h.Client, Format: format}
}

// byHint returns the session of a hint, or an error wrapping storage.ErrNoSession.
func (a *Sessions) byHint(ctx context.Context, hint string) (*open.Session, error) {
	id, ok := a.Clients().OfHint(a.Tenant(), hint)
	if ok {
		s, err := a.OpenCached(ctx, id)
		if !errors.Is(err, storage.ErrNoSession) {
			return s, err
		}
	}
	for info, err := range a.sessions.List(ctx, storage.SessionQuery{Hint: hint, Limit: 1}) {
		if err != nil {
			return nil, fmt.Errorf("find session by hint: %w", err)
		}
		a.Clients().SetHint(a.Tenant(), hint, info.Session)
		return a.Open(ctx, info.Session)
	}
	if ok {
		// It has no record yet, or another process has deleted it. No other process
		// has stored a session of this hint meanwhile.
		return a.CreateAs(id, storage.Meta{Hint: hint}), nil
	}
	return nil, fmt.Errorf("find session by hint: %w", storage.ErrNoSession)
}

// byHistory returns the session that holds the longest part of a history, at least
// up to an assistant message; nil if there is none.
func (a *Sessions) byHistory(ctx context.Context, in *incoming) (*open.Session, error) {
	chains := matchableChains(in.req.Messages, in.chains)
	// Most histories are recorded except for their last message, so the end is
	// looked up first, and alone: many sessions may share shorter prefixes.
	for size, end := 2, len(chains); end > 0; size *= 8 {
		from := max(0, end-size)
		found, err := a.Match(ctx, chains[from:end], 64)
		if err != nil {
			return nil, fmt.Errorf("match history: %w", err)
		}
		id, err := a.choose(ctx, in, chains[from:end], found)
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

// matchableChains returns the chains by which a history can be matched: those
// that include an assistant message, in order and without duplicates.
func matchableChains(msgs []furl.Message, chains []furl.Digest) []furl.Digest {
	first := firstReply(msgs)
	if first < 0 {
		return nil
	}
	return slices.Compact(slices.Clone(chains[first:]))
}

// firstReply returns the index of the first assistant message with content other
// than thinking, or of the first compaction, -1 if there is none.
func firstReply(msgs []furl.Message) int {
	for i := range msgs {
		if fingerprint.FromModel(&msgs[i]) {
			return i
		}
	}
	return -1
}

// choose returns the session that has the longest of the chains, "" if none is
// usable. Sessions with another hint are not.
func (a *Sessions) choose(ctx context.Context, in *incoming, chains []furl.Digest, found []storage.Matched) (furl.SessionID, error) {
	h := in.hints
	metas := make(map[furl.SessionID]storage.Meta)
	opened := 0
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
			if meta.Settings[settingPartial] != "" && h.Hint == "" {
				opened++
				if opened > maxCandidates || !a.continues(ctx, in, f) {
					continue
				}
			}
			if meta.ForkOf != "" && f.Seq <= meta.ForkAt {
				copied = f.Session // a fork; the original has it too and is preferred
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

// byHead returns the session in memory whose current path the history extends by
// user messages and results only, nil if there is none. No session can hold a
// longer part of the history. read says that the store need not be read again.
func (a *Sessions) byHead(in *incoming) (found *open.Session, read bool) {
	msgs := in.req.Messages
	first := firstReply(msgs)
	if first < 0 {
		return nil, false
	}
	for i := len(msgs) - 1; i >= first; i-- {
		if fingerprint.AddsNothing(&msgs[i]) {
			continue
		}
		if s := a.FindByHead(in.chains[i]); s != nil {
			other, partial := false, false
			a.read(s, func(t *tx) {
				m, hint, st := t.Meta(), in.hints.Hint, t.Log().State()
				other = hint != "" && m.Hint != "" && m.Hint != hint
				if hint == "" && m.Settings[settingPartial] != "" {
					last, _ := st.Message(st.Len() - 1)
					partial = !t.hasReplyUpTo(last)
				}
				read = t.RecentlyRead()
			})
			if other || partial { // of such a partial one, byHistory decides
				return nil, false
			}
			return s, read
		}
		if msgs[i].Role == furl.RoleAssistant {
			return nil, false
		}
	}
	return nil, false
}
