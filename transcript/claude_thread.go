package transcript

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// claudeThread is one conversation of a file: a session or a sub-agent.
type claudeThread struct {
	id, parent string
	side       bool // a sub-agent
	joined     *claudeThread
	records    []*claudeRecord

	nodes  []*claudeNode
	nodeOf map[string]*claudeNode // by the uuid of a record
	calls  map[string]*claudeNode // the reply that made a call
	reply  *claudeNode            // the newest
	byID   map[string]*claudeNode // replies by the id of their message
	cut    *claudeNode            // the newest, while it has no summary
	start  *claudeRecord          // the record from which the first prompt starts
	tree   bool                   // records name their parents
	tails  int                    // records followed in tails

	brief bool // texts are shortened; see Reader.UsageOnly
}

// claudeNode is one message as it was sent, with all records that store it.
type claudeNode struct {
	kind    claudeNodeKind
	parent  *claudeNode // nil with orphan false: the start
	orphan  bool        // its predecessor is unknown
	records []*claudeRecord
	results *claudeNode // of a reply: the results of its calls
	cut     *claudeNode // of a message kept by a compaction: the node that it then follows

	ref  ref         // in the builder, once added
	prev *claudeNode // on its branch, once added
	said bool
	// replies and prompts count those on the branch up to this node.
	replies, prompts, depth int
}

type claudeNodeKind uint8

const (
	claudeReply claudeNodeKind = iota
	claudeResults
	claudePrompt  // typed by the user
	claudeAside   // from the client
	claudeSummary // a compaction
	claudeCleared // old results cleared
)

// root returns the thread that t was found to be a part of, or t itself.
func (t *claudeThread) root() *claudeThread {
	for t != nil && t.joined != nil {
		if t.joined.joined != nil {
			t.joined = t.joined.joined
		}
		t = t.joined
	}
	return t
}

// session builds the thread's session.
func (t *claudeThread) session(c *claudeReader) *Session {
	b := newBuilder(c.in, anthropic.Codec)
	b.ID, b.Parent = t.id, t.parent
	t.nodeOf, t.calls, t.byID = make(map[string]*claudeNode), make(map[string]*claudeNode), make(map[string]*claudeNode)
	messages := 0
	t.dropQueued()
	for _, r := range t.records {
		if r.kind == claudeMessage {
			messages++
		}
		b.Project = cmp.Or(b.Project, r.cwd)
		if t.parent == "" {
			b.ForkOf = cmp.Or(b.ForkOf, r.forkOf)
		}
		if title := c.titles[r.uuid]; title != "" && r.uuid != "" {
			b.Title = title
		}
		t.tree = t.tree || (r.parent != "" && c.byUUID[r.parent] != nil)
		if n := t.place(c, r); n != nil && r.uuid != "" {
			t.nodeOf[r.uuid] = n
		}
	}
	b.Title = cmp.Or(c.named[t.id], c.titled[t.id], b.Title)
	t.brief = c.in.usageOnly && isFolder(b.Project) && t.identified()
	s := claudeSpeaker{builder: b, thread: t, sent: newClaudeSent(c.requests)}
	for _, n := range t.nodes {
		s.say(n)
	}
	s.checkWindows()
	if s.sent.unknown > 0 {
		c.in.note("estimated parts of %s that Claude Code has recorded: the file does not have all messages", plural(s.sent.unknown, "request"))
	}
	session := b.finish()
	session.Messages = messages
	return session
}

// identified reports whether all replies have ids, so that their words need not identify them.
func (t *claudeThread) identified() bool {
	return !slices.ContainsFunc(t.nodes, func(n *claudeNode) bool { return n.kind == claudeReply && n.records[0].id == "" })
}

// dropQueued drops queued text that newer versions record a second time, as
// an attachment.
func (t *claudeThread) dropQueued() {
	attached := make(map[string]bool)
	for _, r := range t.records {
		if r.kind == claudeExtra {
			attached[r.text] = true
		}
	}
	t.records = slices.DeleteFunc(t.records, func(r *claudeRecord) bool {
		return r.kind == claudeQueue && attached[r.text]
	})
}

// place finds or makes the node of a record; nil if the record has no node of
// its own.
func (t *claudeThread) place(c *claudeReader, r *claudeRecord) *claudeNode {
	switch r.kind {
	case claudeCut:
		return t.placeBoundary(c, r)
	case claudeMask:
		return t.addNode(c, r, claudeCleared)
	case claudeExtra, claudeQueue:
		return t.addNode(c, r, claudeAside)
	}
	if len(r.blocks) == 0 {
		return nil
	}
	if r.role == "assistant" {
		return t.placeReply(c, r)
	}
	if r.summary {
		return t.placeSummary(c, r)
	}
	if n := t.placeResults(r); n != nil {
		return n
	}
	if len(t.nodes) > 0 && r.continues(c) {
		r.summary = true
		return t.placeSummary(c, r)
	}
	if r.meta {
		return t.addNode(c, r, claudeAside)
	}
	return t.addNode(c, r, claudePrompt)
}

// claudeSynthetic is the model name of messages that the client writes
// itself.
const claudeSynthetic = "<synthetic>"

// placeReply adds a record of the model to the node of its response, whose
// records share the message id. The client's messages about failed requests
// were never sent.
func (t *claudeThread) placeReply(c *claudeReader, r *claudeRecord) *claudeNode {
	if r.apiError {
		return nil
	}
	n := t.byID[r.id]
	switch {
	case n == nil:
		n = t.addNode(c, r, claudeReply)
		if t.reply = n; r.id != "" {
			t.byID[r.id] = n
		}
	case n == t.reply:
		n.records = append(n.records, r)
	default: // two processes write into the file, or the reply is in it twice
		r.dropRepeated(n)
		n.records = append(n.records, r)
	}
	for _, b := range r.blocks {
		if b.typ == "tool_use" {
			t.calls[b.id] = n
		}
	}
	return n
}

// dropRepeated drops the blocks that a reply has already.
func (r *claudeRecord) dropRepeated(n *claudeNode) {
	r.blocks = slices.DeleteFunc(r.blocks, func(b part) bool {
		return slices.ContainsFunc(n.records, func(old *claudeRecord) bool {
			return slices.ContainsFunc(old.blocks, func(o part) bool { return bytes.Equal(o.raw, b.raw) })
		})
	})
}

// placeResults adds a record with results to the node of the reply that made
// the calls. It returns nil if the record has no results, or only results of
// unknown calls.
func (t *claudeThread) placeResults(r *claudeRecord) *claudeNode {
	for _, b := range r.blocks {
		if b.typ != "tool_result" {
			continue
		}
		reply := t.calls[b.answer]
		if reply == nil {
			continue
		}
		if reply.results == nil {
			reply.results = &claudeNode{kind: claudeResults, parent: reply}
		}
		reply.results.records = append(reply.results.records, r)
		return reply.results
	}
	return nil
}

// placeBoundary adds a node for a compaction.
func (t *claudeThread) placeBoundary(c *claudeReader, r *claudeRecord) *claudeNode {
	if r.logical != "" {
		r.parent, r.root = r.logical, false
	}
	n := t.addNode(c, r, claudeSummary)
	t.cut = n
	for _, uuid := range t.kept(c, r.boundary) {
		if kept := t.nodeOf[uuid]; kept != nil {
			kept.cut = n
		}
	}
	return n
}

// maxClaudeTails bounds the records that the compactions of one conversation
// keep: the parents in a tail might form a cycle.
const maxClaudeTails = 1_000_000

// kept returns the records that a compaction left in place.
func (t *claudeThread) kept(c *claudeReader, meta object) (uuids []string) {
	if list := meta.object("preservedMessages"); list.has("uuids") {
		return stringsOf(list["uuids"])
	}
	seg := meta.object("preservedSegment")
	head, at := seg.str("headUuid"), seg.str("tailUuid")
	if head == "" || at == "" {
		return nil
	}
	for t.tails < maxClaudeTails {
		t.tails++
		uuids = append(uuids, at)
		r := c.byUUID[at]
		if at == head || r == nil || r.parent == "" {
			break
		}
		at = r.parent
	}
	if at != head {
		return nil // a segment with gaps
	}
	return uuids
}

// placeSummary adds a summary to the node of its compaction. A summary
// without one is a compaction of everything before it.
func (t *claudeThread) placeSummary(c *claudeReader, r *claudeRecord) *claudeNode {
	n := t.cut
	t.cut = nil
	if n == nil {
		return t.addNode(c, r, claudeSummary)
	}
	n.records = append(n.records, r)
	return n
}

// addNode makes a node after the one that the record's parent belongs to.
func (t *claudeThread) addNode(c *claudeReader, r *claudeRecord, kind claudeNodeKind) *claudeNode {
	n := &claudeNode{kind: kind, records: []*claudeRecord{r}}
	var start *claudeRecord
	n.parent, start = t.predecessor(c, r)
	// A file without parents has no branches.
	n.orphan = n.parent == nil && (start == nil || !t.tree)
	if kind == claudePrompt && start != nil {
		if t.start == nil {
			t.start = start
		}
		// A prompt that replaces the first one starts where that did. Another start
		// has lost its link to the record before it.
		if start != t.start && (start.kind != claudeMessage || t.start.kind != claudeMessage) {
			n.orphan = true
		}
	}
	t.nodes = append(t.nodes, n)
	return n
}

// predecessor finds the node that a record follows, skipping records without
// a node. It stores the result in these, so that the next search is short. If the
// record begins the conversation, it returns the record without a parent; if the
// record's parent is missing, it returns neither.
func (t *claudeThread) predecessor(c *claudeReader, r *claudeRecord) (n *claudeNode, start *claudeRecord) {
	var through []*claudeRecord
	lead := func(uuid string) {
		for _, link := range through {
			link.parent = uuid
		}
	}
	for range len(c.byUUID) + 1 { // a bound, in case the parents form a cycle
		if r.parent == "" {
			if len(through) > 0 {
				through = through[:len(through)-1]
				lead(r.uuid)
			}
			// A record without a parent is a start if it says so itself.
			if r.root && (r.kind == claudeMessage || r.kind == claudeLink) {
				return nil, r
			}
			return nil, nil
		}
		if n = t.nodeOf[r.parent]; n != nil {
			lead(r.parent)
			return n, nil
		}
		if r = c.byUUID[r.parent]; r == nil {
			break
		}
		through = append(through, r)
	}
	lead(unknownParent)
	return nil, nil
}

// unknownParent is the parent of records whose parents are in another file or form
// a cycle.
const unknownParent = "\x00"

// stringsOf returns the strings of a list.
func stringsOf(raw []byte) (list []string) {
	r := rawjson.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		if s, ok := r.String(); ok {
			list = append(list, s)
		}
	}
	return list
}
