package exchange

import (
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
)

// Some clients change the front of their history: the first message has the time,
// only the newest messages are sent, or a summary replaces the older ones. Every
// chain of digests then differs from the log, although most messages are in it. The
// history still continues a path of the log if a run of its messages is there. What
// the client has changed or left out before the run is recorded as a reduction by
// the client, so the log grows only by what is new.

const (
	// maxAnchors is the number of messages at the end of a history of which one must
	// be in the log.
	maxAnchors = 64
	// maxPlaces is the number of places in the log that are tried for a message.
	maxPlaces = 8
	// maxFront is the largest number of messages that a client puts in place of
	// others. They are recorded with each change.
	maxFront = 4
	// maxReplyMessages is the largest number of messages that a reply may have in
	// the log.
	maxReplyMessages = 16
)

// front says which messages of a path a history does not have, and what it has in
// their place. They follow the chain after, and the chain next ends the first message
// that both have again.
type front struct {
	after, next furl.Digest
	from, to    int // messages of the history in their place
}

// overlap is a run of messages of a history that is in a log.
type overlap struct {
	pairs  []overlapPair // newest first
	chains []furl.Digest // of the history, continued from the log
	front  *front        // nil: the client has only changed texts
}

// overlapPair says that message index of a history is the message last of the log.
// A reply may have several messages there, from first on.
type overlapPair struct {
	first, last furl.Seq
	index       int
}

// matchFront continues the match of a history after pl, if a run of its messages
// after pl is in the log. It then sets in.chains to the chains of the log, and
// returns true.
func (t *tx) matchFront(in *incoming, pl position) bool {
	n := len(in.req.Messages) - in.tailLen
	if firstReply(in.req.Messages[pl.matched:n]) < 0 {
		return false // the usual case
	}
	if in.newVolatile != "" || lastCompaction(in.req.Messages[:n]) >= 0 {
		// The changing end of an earlier request is still on the path, or the history is
		// found by its compaction.
		return false
	}
	o := t.findOverlap(in, pl, (*overlap).isCertain)
	if o == nil {
		return false
	}
	in.chains, in.front, in.reworded, in.edited = o.chains, o.front, true, true
	return true
}

// findOverlap returns the run of messages after pl whose end is nearest to the end of the
// history, nil if there is none that is accepted.
func (t *tx) findOverlap(in *incoming, pl position, accept func(*overlap, *tx, []furl.Message) bool) *overlap {
	msgs := in.req.Messages[:len(in.req.Messages)-in.tailLen]
	oldest := max(pl.matched, len(msgs)-maxAnchors)
	places := t.placesOf(msgs[oldest:])
	for i := len(msgs) - 1; i >= oldest; i-- {
		var best *overlap
		for _, seq := range slices.Concat(places.equal[msgs[i].Digest], places.calling[firstCall(&msgs[i])]) {
			o := &overlap{pairs: t.pairBackwards(msgs, seq, i)}
			if len(o.pairs) > 0 && (best == nil || len(o.pairs) > len(best.pairs)) && t.complete(o, in, pl) && accept(o, t, msgs) {
				best = o
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// places are the newest messages of a log that are equal to some messages, by digest,
// or have the same first call, by its id.
type places struct {
	equal   map[furl.Digest][]furl.Seq
	calling map[string][]furl.Seq
}

// placesOf returns the places of messages in the log.
func (t *tx) placesOf(msgs []furl.Message) places {
	p := places{make(map[furl.Digest][]furl.Seq), make(map[string][]furl.Seq)}
	for i := range msgs {
		if !fingerprint.AddsNothing(&msgs[i]) {
			p.equal[msgs[i].Digest] = nil
		}
		if id := firstCall(&msgs[i]); id != "" {
			p.calling[id] = nil
		}
	}
	for _, r := range slices.Backward(t.Log().Records(0)) {
		m, ok := r.Body.(*furl.Message)
		if !ok || r.Chain.IsZero() {
			continue
		}
		if list, ok := p.equal[m.Digest]; ok {
			if len(list) < maxPlaces {
				p.equal[m.Digest] = append(list, r.Seq)
			}
			continue
		}
		if id := firstCall(m); id != "" {
			if list, ok := p.calling[id]; ok && len(list) < maxPlaces {
				p.calling[id] = append(list, r.Seq)
			}
		}
	}
	return p
}

// firstCall returns the id of the first call in a message, "" for none.
func firstCall(m *furl.Message) string {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindCall && !b.Own {
			return b.ID
		}
	}
	return ""
}

// pairBackwards pairs messages of a history with those of the path to the record
// seq, from message i on towards the front, as long as they are equal.
func (t *tx) pairBackwards(msgs []furl.Message, seq furl.Seq, i int) (pairs []overlapPair) {
	for i >= 0 && seq != 0 {
		r := t.Log().At(seq)
		switch m := r.Body.(*furl.Message); {
		case r.Chain.IsZero():
			return pairs // instructions
		case fingerprint.AddsNothing(m):
			seq = t.messageBefore(seq)
		case fingerprint.AddsNothing(&msgs[i]):
			i--
		default:
			first := t.sameReply(seq, &msgs[i])
			if first == 0 {
				return pairs
			}
			pairs = append(pairs, overlapPair{first, seq, i})
			seq, i = t.messageBefore(first), i-1
		}
	}
	return pairs
}

// messageBefore returns the message before a record on its path, 0 if there is none.
func (t *tx) messageBefore(seq furl.Seq) furl.Seq {
	for seq = t.Log().At(seq).Parent; seq != 0; seq = t.Log().At(seq).Parent {
		if _, ok := t.Log().At(seq).Body.(*furl.Message); ok {
			break
		}
	}
	return seq
}

// sameReply returns the first of the messages that end at the record last and are
// the message m of a history, reworded or not; 0 if they are not.
func (t *tx) sameReply(last furl.Seq, m *furl.Message) furl.Seq {
	if was := t.Log().At(last).Body.(*furl.Message); was.Digest == m.Digest {
		return last
	}
	if m.Role != furl.RoleAssistant {
		return 0
	}
	var want fingerprint.Reply
	if !want.Add(m) {
		return 0
	}
	var run []*furl.Message // last first
	for seq := last; seq != 0 && len(run) < maxReplyMessages; seq = t.messageBefore(seq) {
		was := t.Log().At(seq).Body.(*furl.Message)
		if was.Role != furl.RoleAssistant && !was.HasOwn() {
			return 0
		}
		run = append(run, was)
		var have fingerprint.Reply
		for _, part := range slices.Backward(run) {
			if !have.Add(part) {
				return 0
			}
		}
		if !fingerprint.AddsNothing(was) && have.Same(&want) {
			return seq
		}
	}
	return 0
}

const (
	// certainBytes and certainMessages are how much different content a run must have
	// that belongs to the same session by its client's id or by its start. Sub-agents
	// under their parent's id may have the same short texts.
	certainBytes, certainMessages = 256, 4
)

// isCertain reports whether a run is certainly one of the session, which is known.
func (o *overlap) isCertain(t *tx, msgs []furl.Message) bool {
	c := o.content(msgs)
	return c.replies > 0 && (o.front == nil || c.calls > 0 || c.bytes >= certainBytes || c.messages >= certainMessages)
}

// runContent is the content of a run, without repetitions.
type runContent struct{ messages, replies, calls, bytes int }

func (o *overlap) content(msgs []furl.Message) (c runContent) {
	seen := make(map[furl.Digest]bool)
	for _, p := range o.pairs {
		m := &msgs[p.index]
		if m.Role == furl.RoleAssistant {
			c.replies++
		}
		if seen[m.Digest] {
			continue
		}
		seen[m.Digest] = true
		c.messages++
		for i := range m.Blocks {
			b := &m.Blocks[i]
			c.bytes += len(b.Text) + len(b.Args)
			if b.Kind == furl.KindCall && b.ID != "" {
				c.calls++
			}
		}
	}
	return c
}

// complete sets the chains and the front of an overlap. It returns false if what the
// history has before it cannot be recorded as a change by the client.
func (t *tx) complete(o *overlap, in *incoming, pl position) bool {
	msgs := in.req.Messages
	start := o.pairs[len(o.pairs)-1]
	after, from := pl.lastMatched, pl.matched
	if from > start.index {
		return false
	}
	path, ok := t.messagesBetween(after, start.first)
	if !ok { // the history's start is on another branch
		after, from = 0, 0
		path, _ = t.messagesBetween(0, start.first)
	}
	for from < start.index && in.chains[from].IsZero() {
		from++ // instructions
	}
	chains := slices.Clone(in.chains)
	for len(path) > 0 && from < start.index && isEdited(t.message(path[0]), &msgs[from]) {
		after, chains[from] = path[0], t.Log().At(path[0]).Chain
		path, from = path[1:], from+1
	}
	if len(path) == 0 && from < start.index {
		// Messages were added. They take the place of the next one, with it.
		if !fingerprint.IsUserText(&msgs[start.index]) || len(o.pairs) < 2 {
			return false
		}
		path, o.pairs = append(path, start.first), o.pairs[:len(o.pairs)-1]
		start = o.pairs[len(o.pairs)-1]
	}
	if len(path) > 0 {
		if !replaces(msgs[from:start.index]) {
			return false
		}
		o.front = &front{next: t.Log().At(start.first).Chain, from: from, to: start.index}
		if after != 0 {
			o.front.after = t.Log().At(after).Chain
		}
	}
	for _, p := range o.pairs {
		chains[p.index] = t.Log().At(p.last).Chain
	}
	at := len(o.pairs) - 1 // in o.pairs
	for i := start.index + 1; i < len(msgs); i++ {
		for at >= 0 && o.pairs[at].index < i {
			at--
		}
		if at < 0 || o.pairs[at].index != i {
			chains[i] = furl.ChainAt(msgs, chains, i)
		}
	}
	o.chains = chains
	return true
}

// message returns the message of a record.
func (t *tx) message(seq furl.Seq) *furl.Message { return t.Log().At(seq).Body.(*furl.Message) }

// messagesBetween returns the messages with content on the path to a record, after
// the record after and before the record end. ok is false if after is not on it.
func (t *tx) messagesBetween(after, end furl.Seq) (list []furl.Seq, ok bool) {
	seq := t.messageBefore(end)
	for ; seq > after; seq = t.messageBefore(seq) {
		if r := t.Log().At(seq); !r.Chain.IsZero() && !fingerprint.AddsNothing(r.Body.(*furl.Message)) {
			list = append(list, seq)
		}
	}
	slices.Reverse(list)
	return list, seq == after || after == 0
}

// replaces reports whether a client may have put these messages in place of others.
func replaces(msgs []furl.Message) bool {
	if len(msgs) > maxFront {
		return false
	}
	for i := range msgs {
		for k := range msgs[i].Blocks {
			switch msgs[i].Blocks[k].Kind {
			case furl.KindText, furl.KindImage, furl.KindDocument, furl.KindThinking:
			default:
				return false
			}
		}
	}
	return true
}

// isEdited reports whether m is the message was, with other texts that have at least
// half of their content in common with it.
func isEdited(was, m *furl.Message) bool {
	if was.Role != m.Role || m.Role == furl.RoleAssistant || len(was.Blocks) != len(m.Blocks) {
		return false
	}
	common, size := 0, 0
	for i := range m.Blocks {
		a, b := &was.Blocks[i], &m.Blocks[i]
		switch {
		case a.Kind != b.Kind:
			return false
		case a.Kind == furl.KindText:
			common, size = common+commonBytes(a.Text, b.Text), size+max(len(a.Text), len(b.Text))
		case a.Kind != furl.KindImage && a.Kind != furl.KindDocument, !sameResult(a, b):
			return false
		}
	}
	return 2*common >= size
}

// commonBytes returns the number of bytes with which two texts both start and end.
func commonBytes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	m := 0
	for m < len(a) && m < len(b) && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return n + m
}

// recordFront records which messages of the path the client leaves out or replaces. It
// shows messages that it had left out and sends again. Failures are only logged:
// the request is sent as the client has it anyway.
func (t *tx) recordFront(in *incoming, c furl.Counter) {
	st, p := t.Log().State(), &in.pairs
	if t.Index().LeavesOut {
		t.showSentAgain(st, p)
		st = t.Log().State()
	}
	if p.gap.from == p.gap.to {
		return
	}
	mark := furl.Mark{}
	reason := "the client left these messages out"
	if in.front.from < in.front.to && len(t.Meta().Redactions) == 0 { // the client's messages may have what was redacted
		reason = "the client replaced these messages"
		for i := in.front.from; i < in.front.to; i++ {
			mark.Messages = append(mark.Messages, cloneMessage(&in.req.Messages[i]))
		}
	}
	if t.showsFront(st, p.gap, &mark) {
		return
	}
	first, _ := st.Message(p.gap.from)
	last, m := st.Message(p.gap.to - 1)
	end := furl.Pos{Msg: last, Block: max(0, len(m.Blocks)-1)}
	for _, m := range mark.Messages {
		m.Measure(c)
	}
	red := &furl.Reduction{
		Stage: furl.StageClient, Reason: reason,
		Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: first}, Last: end}}, Show: mark}},
	}
	t.Measure(red)
	if _, err := t.Append(furl.Client, red); err != nil {
		t.all.Options().Logger.Debug("messages that the client left out are not recorded as such", "session", t.s.ID(), "error", err)
	}
}

// showSentAgain shows messages that the client had left out and that it sends.
func (t *tx) showSentAgain(st *furl.State, p *pairing) {
	var spans []furl.Span
	open := false
	for i, j := range p.to {
		seq, m := st.Message(i)
		if j < 0 || !leftOut(st, seq) {
			open = open && j == notSent && fingerprint.AddsNothing(m)
			continue
		}
		end := furl.Pos{Msg: seq, Block: max(0, len(m.Blocks)-1)}
		if open {
			spans[len(spans)-1].Last = end
		} else {
			spans = append(spans, furl.Span{First: furl.Pos{Msg: seq}, Last: end})
		}
		open = true
	}
	if len(spans) == 0 {
		return
	}
	if _, err := t.Append(furl.Client, &furl.Restoration{Open: true, Spans: spans, Hold: furl.Release}); err != nil {
		t.all.Options().Logger.Debug("messages that the client sends again are not shown", "session", t.s.ID(), "error", err)
	}
}

// leftOut reports whether the client has left out or replaced the message of a record.
func leftOut(st *furl.State, seq furl.Seq) bool {
	return clientMark(st, st.ShownBy(furl.Pos{Msg: seq})) != nil
}

// clientMark returns what a reduction by the client shows in place of messages, nil
// if it is another reduction.
func clientMark(st *furl.State, by furl.Seq) *furl.Mark {
	if by == 0 {
		return nil
	}
	red, ok := st.Reduction(by)
	if !ok || red.Stage != furl.StageClient || len(red.Items) == 0 {
		return nil
	}
	if mark, ok := red.Items[0].Show.(furl.Mark); ok {
		return &mark
	}
	return nil
}

// span is a range of messages of a path.
type span struct{ from, to int }

// showsFront reports whether the state shows nothing but the mark in place of a range
// of messages, or a reduction by a policy that hides them and what the client
// had in their place.
func (t *tx) showsFront(st *furl.State, gap span, mark *furl.Mark) bool {
	var by furl.Seq
	policy := true
	for i := gap.from; i < gap.to; i++ {
		seq, m := st.Message(i)
		for k := range max(1, len(m.Blocks)) {
			now := st.ShownBy(furl.Pos{Msg: seq, Block: k})
			shown := clientMark(st, now)
			switch {
			case now == 0 || shown == nil && len(mark.Messages) == 0:
				return false
			case shown == nil:
				continue // a policy hides it
			case !slices.EqualFunc(shown.Messages, mark.Messages, sameMessage):
				return false
			case len(mark.Messages) > 0 && by != 0 && by != now:
				return false
			}
			by, policy = now, false
		}
	}
	return policy || by != 0
}
