package exchange

import (
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/open"
)

// Several processes can share a store: gateways behind a load balancer, of which
// each gets some requests of a conversation. A history with a reply that the log
// in memory lacks was continued by another process, so the log is read again. If
// the store lacks the reply too, the other process is probably recording it: the
// log has the request, and no exchange after it. Then the request waits for a
// moment. If the reply does not come, because that process is slow or has ended,
// the request brings the reply itself, and an exchange that is recorded later
// recognizes it (session.Session.Observe).

const (
	// elsewhereTimeout is how long a request waits for a reply that another process
	// may be recording.
	elsewhereTimeout = 5 * time.Second
	// The store is read after the first pause, then after pauses that double up to
	// the longest one.
	firstPause, longestPause = 4 * time.Millisecond, 100 * time.Millisecond
	// maxReplyTime is how old a request may be for its reply to be in progress in
	// another process.
	maxReplyTime = time.Hour
)

// awaitElsewhere reads the session from the store if the history has replies that
// the log lacks, and waits for one that another process may be recording. Errors of
// the store are left to the next step, which reads it too.
func (a *Sessions) awaitElsewhere(ctx context.Context, s *open.Session, in *incoming) {
	var lacks, recording bool
	look := func() { a.read(s, func(t *tx) { lacks, recording = t.lacksReply(in) }) }
	if look(); !lacks {
		return
	}
	p := pauses{deadline: time.Now().Add(elsewhereTimeout)}
	if s.ReadSince(in.began) && (!recording || !p.pause(ctx)) {
		return
	}
	for {
		if _, err := a.Open(ctx, s.ID()); err != nil {
			return
		}
		if look(); !recording || !p.pause(ctx) {
			return
		}
	}
}

// awaitFirstReply matches a history again until another process has recorded its
// first reply. It returns nil if that takes too long.
func (a *Sessions) awaitFirstReply(ctx context.Context, in *incoming) (*open.Session, error) {
	p := pauses{deadline: time.Now().Add(elsewhereTimeout)}
	for {
		if s, err := a.byHistory(ctx, in); err != nil || s != nil {
			return s, err
		}
		if !p.pause(ctx) {
			return nil, ctx.Err()
		}
	}
}

// pauses are the pauses between two reads of the store.
type pauses struct {
	last     time.Duration
	deadline time.Time
}

// pause waits, and returns false after the deadline or the end of ctx.
func (p *pauses) pause(ctx context.Context) bool {
	p.last = min(max(2*p.last, firstPause), longestPause)
	if time.Now().Add(p.last).After(p.deadline) {
		return false
	}
	select {
	case <-time.After(p.last):
		return true
	case <-ctx.Done():
		return false
	}
}

// lacksReply reports whether the history has a reply that the log lacks, and whether
// another process may be recording the first of them.
func (t *tx) lacksReply(in *incoming) (lacks, recording bool) {
	if t.Log().Len() == 0 {
		return false, false
	}
	t.UpdateIndex()
	pl := t.locate(in)
	fresh := in.req.Messages[pl.matched : len(in.req.Messages)-in.tailLen]
	first := firstReply(fresh)
	if first < 0 {
		return false, false
	}
	for i := range first {
		if !fingerprint.AddsNothing(&fresh[i]) {
			return true, false
		}
	}
	return true, t.recordedElsewhere(pl)
}

// recordedElsewhere reports whether another process may be recording the reply to
// the request that ends at this position.
func (t *tx) recordedElsewhere(pl position) bool {
	log := t.Log()
	if pl.lastMatched == 0 || pl.head == t.First || pl.head == t.Last || !t.isRecent(pl.lastMatched) {
		return false
	}
	if r := log.At(pl.lastMatched); r.By != furl.Client {
		return false
	}
	recording := true
	after := map[furl.Seq]bool{pl.head: true}
	for _, r := range log.Records(pl.head) {
		if !after[r.Parent] {
			continue
		}
		switch b := r.Body.(type) {
		case *furl.Head:
			continue
		case *furl.Exchange:
			recording = false
		case *furl.Message:
			// After the results of recall tools, the model is asked again.
			recording = b.HasOwn() && b.Role != furl.RoleAssistant
		}
		after[r.Seq] = true
	}
	return recording
}

// isRecent reports whether the reply to a request may still be in progress in
// another process.
func (t *tx) isRecent(request furl.Seq) bool {
	if request == 0 {
		return false
	}
	at := t.Log().At(request).At
	return t.all.Options().Now().Sub(at) <= maxReplyTime && !t.all.OthersHaveEnded(at)
}
