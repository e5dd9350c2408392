package exchange

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
)

// A first request without an id of the client starts a session, because other
// conversations start with "hi" too. A session may stay without a reply, because
// the reply was cut off or the process ended before recording it. Two later
// requests can then still be matched to it: the same request again, and a request
// whose history has the reply.

// settingFirstRequest is the setting with the fingerprint of a session's first
// request. It is set with that request if the client sends no id, and never
// changed.
const settingFirstRequest = "first_request"

const (
	// maxRepeat is how long after a first request an equal one counts as a
	// repetition.
	maxRepeat = 10 * time.Minute
	// maxInFlightElsewhere is how long a request of another process may be in flight, if this
	// process cannot know that the other has ended (open.Sessions.OthersHaveEnded).
	maxInFlightElsewhere = 5 * time.Second
)

// requestFingerprint returns the fingerprint of a request: a digest of its
// body, and one of its instructions and tools.
func requestFingerprint(req *protocol.Request) string {
	sum := sha256.Sum256(req.Body)
	return hex.EncodeToString(sum[:16]) + preambleFingerprint(req)
}

// preambleFingerprint returns the part of a fingerprint for instructions and tools.
func preambleFingerprint(req *protocol.Request) string {
	return "-" + hex.EncodeToString(req.PreambleDigest[:16])
}

// storeFirstRequest stores the fingerprint of the request that starts the session.
func (t *tx) storeFirstRequest(x *Exchange) {
	h := x.incoming.hints
	if h.Hint != "" || h.Session != "" || firstReply(x.original.Messages) >= 0 {
		return
	}
	m := t.Meta().Clone()
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[settingFirstRequest] = requestFingerprint(x.original)
	t.SetMeta(m)
}

// byRepeatedRequest returns the newest session that an equal request has
// started recently and that has no reply, or only such as were cut off, nil if there is
// none.
func (a *Sessions) byRepeatedRequest(ctx context.Context, in *incoming) (*open.Session, error) {
	msgs := in.req.Messages
	if len(msgs) == 0 || in.hints.Hint != "" || firstReply(msgs) >= 0 || in.chains[len(msgs)-1].IsZero() {
		return nil, nil
	}
	found, err := a.Match(ctx, in.chains[len(msgs)-1:], maxCandidates)
	if err != nil {
		return nil, fmt.Errorf("match first request: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	is := requestFingerprint(in.req)
	for _, f := range found {
		meta, err := a.MetaOf(ctx, f.Session)
		if err != nil {
			return nil, err
		}
		if meta.Hint != "" || meta.ForkOf != "" || meta.Settings[settingFirstRequest] != is {
			continue
		}
		s, err := a.OpenCached(ctx, f.Session)
		if err != nil {
			continue // deleted meanwhile
		}
		again := false
		a.read(s, func(t *tx) { again = t.isRepeatable() })
		if again {
			return s, nil
		}
	}
	return nil, nil
}

// isRepeatable reports whether a request equal to the session's first one counts as
// its repetition.
func (t *tx) isRepeatable() bool { return t.hasNoReply(true) && t.isRecentRepeat() }

// isRecentRepeat reports whether a request equal to the newest of the session comes soon
// enough to be its repetition, and the newest is not in flight in another process.
func (t *tx) isRecentRepeat() bool {
	at := t.Log().At(furl.Seq(t.Log().Len())).At
	age := t.all.Options().Now().Sub(at)
	return age <= maxRepeat && (t.Opened || age >= maxInFlightElsewhere || t.all.OthersHaveEnded(at))
}

// awaitsReply reports whether the session has no reply and may continue with
// the first reply in a history. The history starts with the session's messages.
func (t *tx) awaitsReply(in *incoming) bool {
	began := t.Meta().Settings[settingFirstRequest]
	return in.hints.Hint == "" && t.Meta().Hint == "" && t.Meta().ForkOf == "" &&
		(began == "" || strings.HasSuffix(began, preambleFingerprint(in.req))) && t.hasNoReply(false)
}

// hasNoReply reports whether the session has no reply, and none is in flight. With cut,
// replies that were cut off, which have no stop reason, do not count.
func (t *tx) hasNoReply(cut bool) bool {
	if len(t.Flights) > 0 || t.Log().Len() == 0 {
		return false
	}
	ended := true // the newest exchange
	for _, r := range t.Log().Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			ended = b.Stop != ""
		case *furl.Message:
			if b.Role != furl.RoleAssistant && !b.HasOwn() || cut && !ended && r.By == furl.Upstream {
				continue
			}
			if _, own := answerIn(b); !own {
				return false
			}
		}
	}
	return true
}
