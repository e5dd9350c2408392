package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// Clients that resume a conversation can give it a new id, or begin it again with the same
// message. Its history is then recorded again, in another session. Messages that were
// redacted in the first one are recorded in their redacted form there, too. They are found
// by the chains of digests, which stay those of the original messages: the store keeps no
// other trace of a redacted text.

const (
	// maxOpening is how many messages before the first reply are looked up one by one.
	maxOpening = 16
	// maxAlike is how many of the newest sessions that have one of them are looked at. Those
	// that began with a redacted message after its redaction are redacted as well, so the
	// newest ones are enough.
	maxAlike = 4
)

// openingsAlike returns the sessions that begin as a history does before its first reply.
// Many sessions may begin with the same instructions, so each message is looked up alone.
func (a *Sessions) openingsAlike(ctx context.Context, in *incoming) (found []storage.Matched, err error) {
	first := firstReply(in.req.Messages)
	if first < 0 {
		first = len(in.chains)
	}
	chains := slices.DeleteFunc(slices.Compact(slices.Clone(in.chains[:first])), furl.Digest.IsZero)
	for _, chain := range chains[:min(len(chains), maxOpening)] {
		alike, err := a.Match(ctx, []furl.Digest{chain}, maxAlike)
		if err != nil {
			return nil, err
		}
		found = append(found, alike...)
	}
	return found, nil
}

// findRedacted sets in.redacted for a history that starts a session.
func (a *Sessions) findRedacted(ctx context.Context, s *open.Session, in *incoming) error {
	var starts bool
	if a.read(s, func(t *tx) { starts = t.Log().Len() == 0 }); !starts {
		return nil
	}
	found, err := a.openingsAlike(ctx, in)
	if chains := matchableChains(in.req.Messages, in.chains); err == nil && len(chains) > 0 {
		var continued []storage.Matched
		continued, err = a.Match(ctx, chains, 64)
		found = append(found, continued...)
	}
	if err != nil {
		return fmt.Errorf("find redacted messages of the history: %w", err)
	}
	seen := make(map[furl.SessionID]bool)
	for _, f := range found {
		if seen[f.Session] {
			continue
		}
		seen[f.Session] = true
		// What is in memory may not know yet that another process has redacted the session.
		meta, err := storage.Info(ctx, a.Store(), furl.SessionKey{Tenant: a.Tenant(), Session: f.Session})
		if err != nil && !errors.Is(err, storage.ErrNoSession) {
			return fmt.Errorf("find redacted messages of the history: %w", err)
		}
		if len(meta.Redactions) == 0 {
			continue
		}
		of, err := a.Open(ctx, f.Session)
		if err != nil {
			return err
		}
		for _, r := range of.Records(0) {
			if m, ok := r.Body.(*furl.Message); ok && meta.Redacted(r.Seq) {
				if in.redacted == nil {
					in.redacted = make(map[furl.Digest]*furl.Message)
				}
				in.redacted[m.Digest] = m
			}
		}
	}
	return nil
}

// appendMessage appends a message of a request.
func (t *tx) appendMessage(in *incoming, m *furl.Message, c furl.Counter) error {
	if len(in.redacted) > 0 {
		m.Seal()
		if form := in.redacted[m.Digest]; form != nil && form.Format == m.Format {
			_, err := t.AppendRedacted(m, form)
			return err
		}
	}
	_, err := t.AppendMessage(m, c)
	return err
}
