package exchange

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// Others begin with "hi" too, so a first request begins a session. Without an id
// of the client's, two requests can still be recognized as parts of a
// conversation that has only its question recorded, because the answer was cut
// off or the process ended before it was recorded: the same request once more,
// and the request that brings the answer from the client's history.

// settingOpening holds digests of the request that began a session without an
// id of the client's. It is set with that request and never changed.
const settingOpening = "first_request"

const (
	// maxRepeat is how long after a first request the same one is taken for
	// its repetition.
	maxRepeat = 10 * time.Minute
	// maxElsewhere is how long a request is taken to be under way in another
	// process that uses the store, since this one cannot know.
	maxElsewhere = 5 * time.Second
)

// opening identifies a request by its body, and by what it has besides the
// messages.
func opening(req *protocol.Request) string {
	sum := sha256.Sum256(req.Body)
	return hex.EncodeToString(sum[:16]) + preambleMark(req)
}

// preambleMark identifies instructions and tools.
func preambleMark(req *protocol.Request) string {
	return "-" + hex.EncodeToString(req.PreambleDigest[:16])
}

// noteOpening notes the request that begins the session.
func (t *tx) noteOpening(x *Exchange) {
	h := x.in.hints
	if h.Hint != "" || h.Session != "" || firstAnswer(x.asked.Messages) >= 0 {
		return
	}
	m := cloneMeta(t.Meta())
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[settingOpening] = opening(x.asked)
	t.SetMeta(m)
}

// repeated finds the session that the same request has begun lately and that got
// no answer, the newest of several; nil if there is none.
func (a *Sessions) repeated(ctx context.Context, in *arrival) (*session.Session, error) {
	msgs := in.req.Messages
	if in.hints.Hint != "" || firstAnswer(msgs) >= 0 || in.chains[len(msgs)-1].IsZero() {
		return nil, nil
	}
	found, err := a.Match(ctx, in.chains[len(msgs)-1:], maxAlike)
	if err != nil {
		return nil, fmt.Errorf("match a first request: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	is := opening(in.req)
	for _, f := range found {
		meta, err := a.MetaOf(ctx, f.Session)
		if err != nil {
			return nil, err
		}
		if meta.Hint != "" || meta.ForkOf != "" || meta.Settings[settingOpening] != is {
			continue
		}
		s, err := a.Recent(ctx, f.Session)
		if err != nil {
			continue // deleted meanwhile
		}
		again := false
		a.read(s, func(t *tx) { again = t.repeatable() })
		if again {
			return s, nil
		}
	}
	return nil, nil
}

// repeatable reports whether a request like the session's first is its
// repetition.
func (t *tx) repeatable() bool {
	if !t.onlyAsked() {
		return false
	}
	age := t.all.Options().Now().Sub(t.Log().At(furl.Seq(t.Log().Len())).At)
	return age <= maxRepeat && (t.opened || age >= maxElsewhere)
}

// asks reports whether the session waits for the first answer that a history
// brings. Its question is that of the history.
func (t *tx) asks(in *arrival) bool {
	began := t.Meta().Settings[settingOpening]
	return in.hints.Hint == "" && t.Meta().Hint == "" && t.Meta().ForkOf == "" &&
		(began == "" || strings.HasSuffix(began, preambleMark(in.req))) && t.onlyAsked()
}

// onlyAsked reports whether nothing of an answer is recorded in the session, and
// none is under way.
func (t *tx) onlyAsked() bool {
	if len(t.pending) > 0 || t.Log().Len() == 0 {
		return false
	}
	for _, r := range t.Log().Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && (m.Role == furl.RoleAssistant || m.HasOwn()) {
			return false
		}
	}
	return true
}
