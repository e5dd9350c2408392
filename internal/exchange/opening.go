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

// A first request without an id of the client starts a session, because other
// conversations start with "hi" too. A session may stay without a reply, because
// the reply was cut off or the process ended before recording it. Two later
// requests can then still be matched to it: the same request again, and a request
// whose history has the reply.

// settingOpening is the setting with the fingerprint of a session's first request.
// It is set with that request if the client sends no id, and never changed.
const settingOpening = "first_request"

const (
	// maxRepeat is how long after a first request an equal one counts as a
	// repetition.
	maxRepeat = 10 * time.Minute
	// maxElsewhere is how long a request of another process that uses the store
	// may be in flight. This process cannot know.
	maxElsewhere = 5 * time.Second
)

// opening returns the fingerprint of a request: a digest of its body, and one of
// its instructions and tools.
func opening(req *protocol.Request) string {
	sum := sha256.Sum256(req.Body)
	return hex.EncodeToString(sum[:16]) + preambleMark(req)
}

// preambleMark returns the part of a fingerprint for instructions and tools.
func preambleMark(req *protocol.Request) string {
	return "-" + hex.EncodeToString(req.PreambleDigest[:16])
}

// noteOpening stores the fingerprint of the request that starts the session.
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

// repeated returns the newest session that an equal request has started recently
// and that has no reply, nil if there is none.
func (a *Sessions) repeated(ctx context.Context, in *arrival) (*session.Session, error) {
	msgs := in.req.Messages
	if in.hints.Hint != "" || firstAnswer(msgs) >= 0 || in.chains[len(msgs)-1].IsZero() {
		return nil, nil
	}
	found, err := a.Match(ctx, in.chains[len(msgs)-1:], maxAlike)
	if err != nil {
		return nil, fmt.Errorf("match first request: %w", err)
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

// repeatable reports whether a request equal to the session's first one counts as
// its repetition.
func (t *tx) repeatable() bool {
	if !t.onlyAsked() {
		return false
	}
	age := t.all.Options().Now().Sub(t.Log().At(furl.Seq(t.Log().Len())).At)
	return age <= maxRepeat && (t.opened || age >= maxElsewhere)
}

// asks reports whether the session has no reply and may continue with the first
// reply in a history. The history starts with the session's messages.
func (t *tx) asks(in *arrival) bool {
	began := t.Meta().Settings[settingOpening]
	return in.hints.Hint == "" && t.Meta().Hint == "" && t.Meta().ForkOf == "" &&
		(began == "" || strings.HasSuffix(began, preambleMark(in.req))) && t.onlyAsked()
}

// onlyAsked reports whether the session has no reply, and none is in flight.
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
