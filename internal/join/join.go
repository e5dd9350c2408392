// Package join adds to a session that the gateway has recorded what a recording of
// the same conversation has besides.
//
// An agent's file and its requests have the same conversation in different bytes: the
// agent inserts reminders and shortens what it sends. The replies of the model are the
// same in both, so they decide which record of the session corresponds to which
// message of the recording: replies with the same response id, the same call, or the
// same text after corresponding replies. A message of the user or a result before a
// corresponding reply corresponds too. All other messages are appended where their
// predecessor is, as branches where the session has other messages there.
package join

import (
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// Result says what was added to a session.
type Result struct {
	// Known is the number of the recording's replies that the session had, Lacked the
	// number that it had not. KnownByID is the number of those known by the id of the
	// response or of a call.
	Known, Lacked, KnownByID int
	// Added is the number of messages that were added, Refused the number that do not
	// fit anywhere, such as those after a step that is not complete in the session.
	Added, Refused int
	// Newest is the time of the newest message that was added.
	Newest time.Time
}

// Compare reports how many replies of a recording a session has.
func Compare(session, recording *furl.Log) Result { return newJoiner(session, recording).result }

// Add appends to the session what only the recording has. The current branch of the
// session stays, unless the recording continues it or was continued later.
func Add(session, recording *furl.Log) Result {
	j := newJoiner(session, recording)
	if j.result.Known == 0 {
		return j.result
	}
	j.start, j.home = session.Head(), session.Head()
	last := newestOf(session)
	j.add()
	if head := j.at[nearest(recording, recording.Head())]; j.result.Newest.After(last) && j.added[head] {
		j.home = head
	}
	if head := session.Head(); head != j.home && nearest(session, head) != j.home {
		_, _ = session.Rewind(j.home, j.result.Newest, furl.Import) // the record exists
	}
	return j.result
}

// joiner maps the messages of a recording to those of a session.
type joiner struct {
	session, recording *furl.Log
	after              map[furl.Seq][]furl.Seq // messages of the session by the message before them
	replies            map[string][]furl.Seq   // of the session, by key
	matched            map[furl.Seq]furl.Seq   // replies of the recording in the session
	// next is a reply of the session that follows what corresponds to a message of
	// the recording.
	next map[furl.Seq]furl.Seq
	// at are the records of the session that correspond to messages of the recording.
	at     map[furl.Seq]furl.Seq
	added  map[furl.Seq]bool
	start  furl.Seq // the head at the beginning
	home   furl.Seq // the newest record after it that is the end of a step
	ahead  bool     // the head continues from home
	result Result
}

func newJoiner(session, recording *furl.Log) *joiner {
	j := &joiner{
		session: session, recording: recording,
		after: make(map[furl.Seq][]furl.Seq), replies: make(map[string][]furl.Seq), matched: make(map[furl.Seq]furl.Seq),
		next: make(map[furl.Seq]furl.Seq), at: map[furl.Seq]furl.Seq{0: 0}, added: make(map[furl.Seq]bool),
	}
	for _, r := range session.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			j.index(r, m)
		}
	}
	j.match()
	return j
}

// index adds a message of the session.
func (j *joiner) index(r furl.Record, m *furl.Message) {
	before := nearest(j.session, r.Parent)
	j.after[before] = append(j.after[before], r.Seq)
	for _, key := range keys(j.session, r, m) {
		j.replies[key] = append(j.replies[key], r.Seq)
	}
}

// match finds the replies of the recording in the session, and what leads to them.
func (j *joiner) match() {
	used := make(map[furl.Seq]bool)
	for _, r := range j.recording.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		list := keys(j.recording, r, m)
		if len(list) == 0 {
			continue
		}
		if seq := j.find(r, list, used); seq != 0 {
			used[seq] = true
			j.matched[r.Seq] = seq
			j.result.Known++
			if list[0][0] != 't' {
				j.result.KnownByID++
			}
		} else {
			j.result.Lacked++
		}
	}
	for i := j.recording.Len(); i > 0; i-- {
		r := j.recording.At(furl.Seq(i))
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		leads := j.next[r.Seq]
		if len(keys(j.recording, r, m)) > 0 {
			leads = j.matched[r.Seq]
		}
		if before := nearest(j.recording, r.Parent); leads != 0 && before != 0 {
			j.next[before] = leads
		}
	}
}

// find returns the reply of the session with one of the keys, 0 if there is none.
func (j *joiner) find(r furl.Record, list []string, used map[furl.Seq]bool) furl.Seq {
	for _, key := range list {
		for _, seq := range j.replies[key] {
			if used[seq] {
				continue
			}
			if key[0] != 't' {
				return seq
			}
			// Texts recur. This one follows the corresponding reply, or is the first
			// after a compaction.
			before := lastReply(j.session, j.session.At(seq).Parent)
			if before == 0 || before == j.matched[lastReply(j.recording, r.Parent)] {
				return seq
			}
		}
	}
	return 0
}

// add appends the messages of the recording that the session lacks.
func (j *joiner) add() {
	exchanges := make(map[furl.Seq]furl.Record) // before a reply
	for _, r := range j.recording.Records(0) {
		switch body := r.Body.(type) {
		case *furl.Exchange:
			exchanges[r.Seq] = r
		case *furl.Reduction:
			j.addReduction(r, body)
		case *furl.Message:
			if seq, ok := j.corresponding(r, body); ok {
				j.at[r.Seq] = seq
				continue
			}
			ex, ok := exchanges[r.Parent]
			j.addMessage(r, body, ex, ok)
		}
	}
}

// corresponding returns the record of the session that corresponds to a message of
// the recording.
func (j *joiner) corresponding(r furl.Record, m *furl.Message) (furl.Seq, bool) {
	if seq, ok := j.matched[r.Seq]; ok {
		return seq, true
	}
	if len(keys(j.recording, r, m)) > 0 {
		return 0, false
	}
	if reply, ok := j.next[r.Seq]; ok {
		return nearest(j.session, j.session.At(reply).Parent), true
	}
	before, ok := j.at[nearest(j.recording, r.Parent)]
	if !ok {
		return 0, false
	}
	for _, seq := range j.after[before] {
		if has(j.session.At(seq).Body.(*furl.Message), m) {
			return seq, true
		}
	}
	return 0, false
}

// addMessage appends a message after the record that corresponds to the one before it.
func (j *joiner) addMessage(r furl.Record, m *furl.Message, ex furl.Record, replies bool) {
	before, ok := j.at[nearest(j.recording, r.Parent)]
	if !ok || !j.moveTo(before, r.At) {
		j.result.Refused++
		return
	}
	if j.session.Head() == j.home {
		j.ahead = true
	}
	if replies {
		e := ex.Body.(*furl.Exchange)
		_, _ = j.session.Append(j.session.Head(), ex.At, furl.Import, &furl.Exchange{Model: e.Model, Usage: e.Usage, Passes: e.Passes, Terms: e.Terms, ResponseID: e.ResponseID, Stop: e.Stop})
	}
	added, err := j.session.Append(j.session.Head(), r.At, furl.Import, m)
	if err != nil {
		j.result.Refused++
		return
	}
	if j.ahead && j.session.State().Boundary(added.Seq) == added.Seq {
		j.home = added.Seq
	}
	j.index(added, m)
	j.at[r.Seq], j.added[added.Seq] = added.Seq, true
	j.result.Added++
	if r.At.After(j.result.Newest) {
		j.result.Newest = r.At
	}
}

// addReduction appends a recorded compaction of messages that were added, so that
// what follows it is as long as it was for the model. A compaction that does not fit is
// left out: more is shown then.
func (j *joiner) addReduction(r furl.Record, red *furl.Reduction) {
	last := nearest(j.recording, r.Parent)
	if !j.added[j.at[last]] || nearest(j.session, j.session.Head()) != j.at[last] {
		return // the session has its own record of it
	}
	copied := *red
	copied.Items = nil
	for _, item := range red.Items {
		if _, ok := item.Show.(furl.Mark); !ok {
			return
		}
		var spans []furl.Span
		for _, sp := range item.Spans {
			first, ok1 := j.at[sp.First.Msg]
			end, ok2 := j.at[sp.Last.Msg]
			if !ok1 || !ok2 || first == 0 || end == 0 {
				return
			}
			blocks := len(j.session.At(end).Body.(*furl.Message).Blocks)
			spans = append(spans, furl.Span{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: end, Block: max(0, blocks-1)}})
		}
		copied.Items = append(copied.Items, furl.Item{Spans: spans, Show: item.Show})
	}
	_, _ = j.session.Append(j.session.Head(), r.At, furl.Import, &copied)
}

// moveTo makes a record, or what follows it without a message, the head of the
// session. It reports false if a step would be split.
func (j *joiner) moveTo(to furl.Seq, at time.Time) bool {
	head := j.session.Head()
	if nearest(j.session, head) == to || head == to {
		return true
	}
	if head == j.start && head != 0 && j.session.State().Boundary(head) != head {
		return false // its calls wait for results: nothing could return to it
	}
	state, err := furl.Fold(j.session, to)
	if err != nil || to != 0 && state.Boundary(to) != to {
		return false
	}
	_, err = j.session.Rewind(to, at, furl.Import)
	j.ahead = false
	return err == nil
}

// nearest returns the last message at or before a record on its path, 0 if there is
// none.
func nearest(log *furl.Log, seq furl.Seq) furl.Seq {
	for seq != 0 {
		r := log.At(seq)
		if _, ok := r.Body.(*furl.Message); ok {
			return seq
		}
		seq = r.Parent
	}
	return 0
}

// lastReply returns the last message with a key at or before a record on its path.
func lastReply(log *furl.Log, seq furl.Seq) furl.Seq {
	for seq = nearest(log, seq); seq != 0; seq = nearest(log, log.At(seq).Parent) {
		r := log.At(seq)
		if len(keys(log, r, r.Body.(*furl.Message))) > 0 {
			return seq
		}
	}
	return 0
}

func newestOf(log *furl.Log) (newest time.Time) {
	for _, r := range log.Records(0) {
		if r.At.After(newest) {
			newest = r.At
		}
	}
	return newest
}

// keys returns what identifies a reply, the surest first: the id of the response, its
// calls, or else its text. Other messages have none, nor has a reply that is only
// thinking.
func keys(log *furl.Log, r furl.Record, m *furl.Message) (list []string) {
	if m.Role != furl.RoleAssistant {
		return nil
	}
	var text strings.Builder
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Own:
		case b.Kind == furl.KindCall && b.ID != "":
			list = append(list, "c"+plainID(b.ID))
		case b.Kind == furl.KindText:
			for word := range strings.FieldsSeq(b.Text) {
				text.WriteString(word)
			}
		}
	}
	if len(list) == 0 && text.Len() > 0 {
		sum := furl.DigestOf([]byte(text.String()))
		list = append(list, "t"+string(sum[:]))
	}
	if len(list) > 0 && r.Parent != 0 && m.Format != furl.FormatResponses { // there, a response is several messages
		if ex, ok := log.At(r.Parent).Body.(*furl.Exchange); ok && ex.ResponseID != "" {
			list = slices.Insert(list, 0, "r"+ex.ResponseID)
		}
	}
	return list
}

// plainID returns the letters and digits of a call's id: some agents, such as OpenClaw,
// send back only these.
func plainID(id string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, id)
}

// has reports whether a message of the session has what one of the recording has: the
// same results, and its texts among others that the agent inserted.
func has(session, recording *furl.Message) bool {
	if session.Role != recording.Role {
		return false
	}
	for i := range recording.Blocks {
		want := &recording.Blocks[i]
		if !slices.ContainsFunc(session.Blocks, func(b furl.Block) bool {
			if b.Kind != want.Kind {
				return false
			}
			if b.Kind == furl.KindResult {
				return plainID(b.ID) == plainID(want.ID)
			}
			return strings.TrimSpace(b.Text) == strings.TrimSpace(want.Text) && (b.Text != "" || session.Digest == recording.Digest)
		}) {
			return false
		}
	}
	return true
}
