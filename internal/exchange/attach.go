package exchange

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/protocol"
)

// incoming is an incoming request, and how its history matches a session.
type incoming struct {
	req    *protocol.Request
	chains []furl.Digest
	hints  protocol.Hints
	recall RecallMode
	// answered is the session that furl's last answer to a command in the history
	// names; see command.go.
	answered furl.SessionID
	// redacted are redacted forms of messages, by the digests of the originals; see
	// redacted.go.
	redacted map[furl.Digest]*furl.Message
	policy   string    // of the session from now on; "": no change
	began    time.Time // when the request began to be matched
	// references are the recorded items that messages of the request refer to, by index;
	// see reference.go.
	references map[int]*furl.Message
	// Set by attach.
	pairs       pairing
	newMessages int    // number of new messages
	tailLen     int    // number of messages at the end that are not on the path; see volatile.go
	newVolatile string // new value of settingVolatile; "": unchanged
	// reworded is set if the client has reworded some replies. The chains are
	// then those of the log.
	reworded bool
	// edited is set if the client has changed the front of the history; see front.go.
	// front is what it has left out or replaced there, nil for nothing.
	edited bool
	front  *front
	// partial is set if the request starts a session and its own start is unknown; see
	// overlap.go.
	partial bool
}

// attach makes the request's history the current path of the log: it finds the
// position where the history continues, rewinds to it, and appends the new
// messages. The session is locked.
func (t *tx) attach(in *incoming) error {
	c := t.Counter(in.req.Model)
	t.UpdateIndex()
	in.newVolatile = ""
	pl := t.locate(in)
	msgs := in.req.Messages[:len(in.req.Messages)-in.tailLen]
	old, matched := t.Log().Head(), pl.matched
	if pl.head != old {
		var err error
		if matched, err = t.rewindTo(pl, in.chains, msgs); err != nil {
			return err
		}
	}
	matched, err := t.followCompaction(in, msgs, matched, c)
	if err != nil {
		return err
	}
	shared := t.Log().Head()
	in.newMessages = len(msgs) - matched
	for i := range msgs[matched:] {
		if err := t.appendMessage(in, in.recordedForm(matched+i), c); err != nil {
			return fmt.Errorf("append message %d of the request: %w", matched+i, err)
		}
	}
	if old != shared && old != 0 && in.newMessages > 0 {
		t.takeOver(old)
	}
	if err := t.recordClientChanges(in, c); err != nil {
		return err
	}
	t.updateMeta(in, old == 0)
	return nil
}

// locate returns the position where a request's history continues. It sets in.tailLen.
func (t *tx) locate(in *incoming) position {
	t.resolveReferences(in)
	in.tailLen = t.volatileTail(in.req.Messages)
	find := func() position {
		n := len(in.req.Messages) - in.tailLen
		return find(t.Change, in.chains[:n], in.req.Messages[:n])
	}
	pl := find()
	for pl.head != t.Log().Head() {
		was := in.tailLen
		if t.detectTail(in, pl); in.tailLen != was {
			pl = find()
		}
		if t.matchReworded(in, pl) {
			pl = find()
		}
		if in.edited || !t.matchFront(in, pl) {
			break
		}
		pl = find() // after the front, the history may differ in the other ways
	}
	return pl
}

// recordClientChanges records what the client has changed in its history or left out.
// Before that, it records the tail of the request on a side branch.
func (t *tx) recordClientChanges(in *incoming, c furl.Counter) error {
	msgs := in.req.Messages
	if in.tailLen > 0 && !t.tailRecorded(in) {
		if err := t.recordOnSideBranch(msgs[len(msgs)-in.tailLen:], c); err != nil {
			return err
		}
	}
	st := t.Log().State()
	t.pairMessages(in)
	meta := t.Meta()
	cleared, texts, again := clientChanges(t.Index().Edits, st, in.pairs, msgs, c, meta.Redacted)
	for _, seq := range again {
		if _, err := t.Append(furl.Client, &furl.Restoration{Of: seq, Hold: furl.Release}); err != nil {
			return err
		}
	}
	for _, red := range []*furl.Reduction{cleared, texts} {
		if red == nil {
			continue
		}
		t.Measure(red)
		if _, err := t.Append(furl.Client, red); err != nil {
			return fmt.Errorf("record what the client changed: %w", err)
		}
	}
	t.recordFront(in, c)
	return nil
}

// pairMessages pairs the request's messages with those of the current path.
func (t *tx) pairMessages(in *incoming) {
	st, msgs := t.Log().State(), in.req.Messages
	if in.pairs = pair(st, in); in.reworded {
		in.pairs.markReworded(st, msgs, in.edited)
	}
	in.pairs.markReferences(in)
}

// tailRecorded reports whether the tail of the request is already recorded,
// because the request was sent before.
func (t *tx) tailRecorded(in *incoming) bool {
	return len(t.Index().ByChain[in.chains[len(in.chains)-1]]) > 0
}

// rewindTo rewinds to a position and returns how many messages of the history
// are on the path then. A rewind into a step goes to the start of the step, so
// the step's messages are appended again.
func (t *tx) rewindTo(pl position, chains []furl.Digest, msgs []furl.Message) (int, error) {
	if _, err := t.Rewind(pl.head, furl.Client); err != nil {
		return 0, err
	}
	st := t.Log().State()
	if st.Len() == 0 {
		return 0, nil
	}
	end := st.Chain(st.Len())
	for i := pl.matched - 1; i >= 0; i-- {
		if chains[i] == end && !fingerprint.AddsNothing(&msgs[i]) {
			return i + 1, nil
		}
	}
	// The step at the position starts inside one of the request's messages.
	_, err := t.Rewind(0, furl.Client)
	return 0, err
}

// projectMessages is the number of messages of a request up to which a session's
// working folder is looked for. Some agents send it after their first request.
const projectMessages = 8

// updateMeta sets the session's metadata from the request. starts is set if it is the
// session's first.
func (t *tx) updateMeta(in *incoming, starts bool) {
	was := t.Meta()
	m := was.Clone()
	if m.Hint == "" && was.ForkOf == "" {
		m.Hint, m.Parent = in.hints.Hint, in.hints.Parent
	}
	if m.Parent == "" && m.Hint == in.hints.Hint {
		m.Parent = in.hints.Parent
	}
	if m.Client = agents.Name(m.Client); m.Client == "" {
		m.Client = in.hints.Client
	}
	if m.Project == "" && (starts || len(in.req.Messages) <= projectMessages) {
		m.Project = WorkingFolder(in.req)
	}
	if m.Format == "" {
		m.Format = in.req.Format
	}
	if in.policy != "" && m.Policy != in.policy {
		m.Policy = in.policy
		t.SetMeta(m)
	}
	if starts && in.partial {
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[settingPartial] = "true"
		t.SetMeta(m)
	}
	if in.newVolatile != "" && in.newVolatile != m.Settings[settingVolatile] {
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[settingVolatile] = in.newVolatile
		t.SetMeta(m)
	}
	if m.Hint != was.Hint || m.Parent != was.Parent || m.Client != was.Client || m.Format != was.Format || m.Project != was.Project {
		t.SetMeta(m)
	}
}

// WorkingFolder returns the folder that the agent of a request works in, "" if the
// request does not name it.
func WorkingFolder(req *protocol.Request) string { return agents.WorkingFolder(promptTexts(req)) }

// promptTexts yields the texts of a request, except those of the model and of tools.
func promptTexts(req *protocol.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range req.Preamble {
			if b := &req.Preamble[i]; b.Kind == furl.KindText && !yield(b.Text) {
				return
			}
		}
		for i := range req.Messages[:min(len(req.Messages), projectMessages)] {
			m := &req.Messages[i]
			if m.Role == furl.RoleAssistant || m.Role == furl.RoleTool {
				continue
			}
			for j := range m.Blocks {
				if m.Blocks[j].Kind == furl.KindText && !yield(m.Blocks[j].Text) {
					return
				}
			}
		}
	}
}

// cloneMessage returns a deep copy of a message of a request. Decoded messages
// share the memory of the request body, which the session would keep alive.
func cloneMessage(m *furl.Message) *furl.Message {
	kept := *m
	kept.Raw = slices.Clone(m.Raw)
	clients.CloneBlocks(&kept) // texts are copies already
	return &kept
}
