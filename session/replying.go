package session

import (
	"context"
	"time"

	"github.com/furlhq/furl"
)

// A reply is sent on before it is recorded, and some clients ask on as soon as
// they have read its last event. The history that such a client sends then is
// not known yet, and where no hint names the session, it is the first reply of a
// conversation by which it would have been found. So a history that is nowhere
// waits for the ends of exchanges whose request it begins with.

// byReply finds the session of a history that was nowhere, once the replies
// under way that it may go on from are recorded; nil if it is in none of them.
func (a *Sessions) byReply(ctx context.Context, in *arrival) (*Session, error) {
	if usable(in.req.Messages, in.chains) == nil {
		return nil, nil
	}
	timeout := time.NewTimer(maxAwait)
	defer timeout.Stop()
	for {
		end := a.replying(in)
		if end != nil {
			select {
			case <-end:
			case <-timeout.C:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		// Also if none is under way: it may have ended since the last look.
		s, err := a.byHistory(ctx, in)
		if err != nil || s != nil || end == nil {
			return s, err
		}
	}
}

// replying finds an exchange under way whose request is the beginning of the
// history, up to a message of the assistant. It gives nil if there is none.
func (a *Sessions) replying(in *arrival) <-chan struct{} {
	begins := make(map[furl.Digest]bool)
	for i := 1; i < len(in.chains); i++ {
		if in.req.Messages[i].Role == furl.RoleAssistant && !in.chains[i-1].IsZero() {
			begins[in.chains[i-1]] = true
		}
	}
	if len(begins) == 0 {
		return nil
	}
	for _, s := range a.inMemory() {
		if s.busy.Load() == 0 {
			continue
		}
		if end := s.answering(begins, in.hints.Hint); end != nil {
			return end
		}
	}
	return nil
}

// answering finds an exchange of the session whose request ends one of these
// chains, nil if there is none or the session is another client's.
func (s *Session) answering(chains map[furl.Digest]bool, hint string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hint != "" && s.meta.Hint != "" && s.meta.Hint != hint {
		return nil
	}
	for x := range s.pending {
		if x.first == 0 {
			continue // its client has no answer yet
		}
		if n := len(x.in.chains) - x.in.tail; n > 0 && chains[x.in.chains[n-1]] {
			return x.end
		}
	}
	return nil
}
