package exchange

import (
	"context"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// Clients that resume a conversation can give it a new id. Its history is then recorded
// again, in another session. Messages that were redacted in the first one are recorded
// in their redacted form there, too.

// findRedacted sets in.redacted for a history that starts a session.
func (a *Sessions) findRedacted(ctx context.Context, s *session.Session, in *incoming) error {
	in.redacted = nil
	var starts bool
	if a.read(s, func(t *tx) { starts = t.Log().Len() == 0 }); !starts {
		return nil
	}
	chains := matchableChains(in.req.Messages, in.chains)
	if len(chains) == 0 {
		return nil
	}
	found, err := a.Match(ctx, chains, 64)
	if err != nil {
		return fmt.Errorf("find redacted messages of the history: %w", err)
	}
	seen := make(map[furl.SessionID]bool)
	for _, f := range found {
		if seen[f.Session] {
			continue
		}
		seen[f.Session] = true
		meta, err := a.MetaOf(ctx, f.Session)
		if err != nil {
			return err
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
