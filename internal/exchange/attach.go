package exchange

import (
	"fmt"
	"maps"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/gist"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// arrival is a request's history as it attaches to a session.
type arrival struct {
	req    *protocol.Request
	chains []furl.Digest
	hints  protocol.Hints
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
func (t *tx) attach(in *arrival) error {
	c := t.Counter(in.req.Model)
	t.places.follow(t.Log())
	in.learned = ""
	pl := t.place(in)
	msgs := in.req.Messages[:len(in.req.Messages)-in.tail]
	old, matched := t.Log().Head(), pl.matched
	if pl.at != old {
		var err error
		if matched, err = t.goTo(pl, in.chains, msgs); err != nil {
			return err
		}
	}
	shared := t.Log().Head()
	in.fresh = len(msgs) - matched
	for i := range msgs[matched:] {
		if _, err := t.AppendMessage(keepable(&msgs[matched+i]), c); err != nil {
			return fmt.Errorf("append message %d of the request: %w", matched+i, err)
		}
	}
	if old != shared && old != 0 && in.fresh > 0 {
		t.takeOver(old)
	}
	if err := t.changedBy(in, c); err != nil {
		return err
	}
	t.describe(in)
	return nil
}

// place finds where a history goes on, and what at its end does not count.
func (t *tx) place(in *arrival) place {
	in.tail = t.moving(in.req.Messages)
	find := func() place {
		n := len(in.req.Messages) - in.tail
		return t.places.find(t.Log(), in.chains[:n], in.req.Messages[:n])
	}
	pl := find()
	if was := in.tail; pl.at != t.Log().Head() {
		if t.learnTail(in, pl); in.tail != was {
			pl = find()
		}
		if t.reword(in, pl) {
			pl = find()
		}
	}
	return pl
}

// changedBy records what the client shows otherwise than it was recorded. The
// tail of the request that is not on the path is recorded beside it before.
func (t *tx) changedBy(in *arrival, c furl.Counter) error {
	msgs := in.req.Messages
	if in.tail > 0 && !t.hasTail(in) {
		if err := t.aside(msgs[len(msgs)-in.tail:], c); err != nil {
			return err
		}
	}
	st := t.Log().State()
	t.repair(in)
	cleared, again := t.places.changes(st, in.pairs, msgs, c)
	for _, seq := range again {
		if _, err := t.Append(furl.Client, &furl.Restoration{Of: seq, Hold: furl.Release}); err != nil {
			return err
		}
	}
	if cleared != nil {
		t.Measure(cleared)
		if _, err := t.Append(furl.Client, cleared); err != nil {
			return fmt.Errorf("record what the client changed: %w", err)
		}
	}
	return nil
}

// repair pairs the request with the path as it is now.
func (t *tx) repair(in *arrival) {
	st, msgs := t.Log().State(), in.req.Messages
	if in.pairs = pair(st, in.chains, msgs); in.reworded {
		in.pairs.mark(st, msgs)
	}
}

// hasTail reports whether the end of the request is recorded already, as it is
// when the request is sent again.
func (t *tx) hasTail(in *arrival) bool {
	return len(t.places.ends[in.chains[len(in.chains)-1]]) > 0
}

// goTo rewinds to a place and gives how much of the history is on the path
// then: a place within a step cannot be gone on from, so what the step has is
// appended once more.
func (t *tx) goTo(pl place, chains []furl.Digest, msgs []furl.Message) (int, error) {
	if _, err := t.Rewind(pl.at, furl.Client); err != nil {
		return 0, err
	}
	st := t.Log().State()
	if st.Len() == 0 {
		return 0, nil
	}
	end := st.Chain(st.Len())
	for i := pl.matched - 1; i >= 0; i-- {
		if chains[i] == end && !gist.Bare(&msgs[i]) {
			return i + 1, nil
		}
	}
	// The step before the place begins within one of the request's messages.
	_, err := t.Rewind(0, furl.Client)
	return 0, err
}

// describe notes what the request tells about the session.
func (t *tx) describe(in *arrival) {
	was := t.Meta()
	m := cloneMeta(was)
	if m.Hint == "" && was.ForkOf == "" {
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
		t.SetMeta(m)
	}
	if m.Hint != was.Hint || m.Client != was.Client || m.Format != was.Format {
		t.SetMeta(m)
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

func cloneMeta(m storage.Meta) storage.Meta {
	m.Settings = maps.Clone(m.Settings)
	return m
}
