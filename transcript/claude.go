package transcript

import (
	"path/filepath"
	"slices"
)

// The session files of Claude Code: JSON Lines, one record a line, in the
// order written, as it keeps them under ~/.claude/projects. They hold more
// than the conversation, and the conversation in another shape than the one
// it was sent in; claude_thread.go puts it back together. What the records
// mean is nowhere documented; it was learned from recordings and from what
// other readers of these files have written down.

var claudeCode = &format{
	name:   "claude-code",
	agent:  "Claude Code",
	detect: detectClaude,
	read:   readClaude,
}

func detectClaude(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "user", "assistant":
			return o.kind("message") == '{' && o.object("message").has("content") &&
				(o.has("sessionId") || o.has("session_id") || o.has("parentUuid"))
		case "summary":
			return o.has("leafUuid")
		case "file-history-snapshot":
			return o.has("snapshot")
		case "queue-operation":
			return o.has("operation", "sessionId")
		case "ai-title", "custom-title", "agent-name", "last-prompt", "mode", "permission-mode":
			return o.has("sessionId") && !o.has("id")
		case "system", "progress", "attachment":
			return o.has("parentUuid", "sessionId")
		}
		return false
	})
}

// claudeReader sorts the records of a file into conversations.
type claudeReader struct {
	in      *input
	threads []*claudeThread            // in order of appearance
	byKey   map[string]*claudeThread   // main ones by session, others by agent
	byUUID  map[string]*claudeRecord   // those of the tree, bookkeeping too
	titles  map[string]string          // of threads, by the record they were told at
	named   map[string]string          // titles people gave, by session
	titled  map[string]string          // titles a model gave, by session
	beside  map[string]bool            // whether an agent has a file of its own
	queued  map[string][]*claudeRecord // words typed while the agent worked, by session
}

func readClaude(in *input) ([]*Session, error) {
	c := &claudeReader{
		in:     in,
		byKey:  make(map[string]*claudeThread),
		byUUID: make(map[string]*claudeRecord),
		titles: make(map[string]string),
		named:  make(map[string]string),
		titled: make(map[string]string),
		beside: make(map[string]bool),
		queued: make(map[string][]*claudeRecord),
	}
	for line, raw := range in.records() {
		if r := c.parse(line, raw); r != nil && in.keep(perLine+r.size()) {
			c.sort(r)
		}
	}
	if in.refused != nil {
		return nil, in.refused
	}
	c.join()
	var sessions []*Session
	for _, t := range c.threads {
		if len(t.records) > 0 {
			sessions = append(sessions, t.session(c))
		}
	}
	return sessions, nil
}

// sort puts a record where it belongs.
func (c *claudeReader) sort(r *claudeRecord) {
	if r.uuid != "" {
		if known := c.byUUID[r.uuid]; known != nil && known.usable() {
			if known.role != r.role || known.kind != r.kind {
				c.in.skip(r.line, "its uuid %q is that of line %d, which says something else", r.uuid[:min(len(r.uuid), 40)], known.line)
			}
			return // written again, as some versions do on resuming
		}
		c.byUUID[r.uuid] = r
	}
	switch r.kind {
	case claudeTitle:
		switch {
		case r.leaf != "":
			c.titles[r.leaf] = r.text
		case r.meta:
			c.titled[r.session] = r.text
		default:
			c.named[r.session] = r.text
		}
		return
	case claudeQueue:
		if c.queue(r) {
			return
		}
	}
	t := c.thread(r)
	r.thread = t
	if r.kind != claudeLink {
		t.records = append(t.records, r)
	}
}

// thread finds the conversation of a record: that of its sub-agent, of its
// parent, or of its session.
func (c *claudeReader) thread(r *claudeRecord) *claudeThread {
	parent := c.byUUID[r.parent]
	if r.agent == "" && r.sidechain && parent != nil && parent.sidechain {
		return parent.thread
	}
	t := &claudeThread{id: r.session}
	key := "session " + r.session
	switch {
	case r.agent != "":
		t = &claudeThread{id: r.agent, parent: r.session, side: true}
		key = "agent " + r.agent
	case r.sidechain:
		t = &claudeThread{id: r.uuid, parent: r.session, side: true}
		key = "chain " + r.uuid
	}
	if known := c.byKey[key]; known != nil {
		t = known.root()
	} else {
		c.byKey[key] = t
		c.threads = append(c.threads, t)
	}
	if t.side {
		return t
	}
	// A session that goes on from a record of another is the same
	// conversation, resumed under a new id.
	if parent != nil && parent.thread != nil && !parent.thread.side {
		if root := parent.thread.root(); root != t {
			t.joined = root
			t = root
		}
	}
	if r.session != "" {
		t.id = r.session
	}
	return t
}

// join gives the records of resumed sessions to the conversation they belong
// to, and sub-agents the id it has in the end.
func (c *claudeReader) join() {
	grown := make(map[*claudeThread]bool)
	for _, t := range c.threads {
		if root := t.root(); root != t {
			root.records = append(root.records, t.records...)
			t.records = nil
			grown[root] = true
		}
		if of := c.byKey["session "+t.parent]; of != nil && t.side {
			t.parent = of.root().id
		}
	}
	for t := range grown {
		slices.SortStableFunc(t.records, func(a, b *claudeRecord) int { return a.line - b.line })
	}
}

// queue follows the words that a person types while the agent works. They are
// sent as soon as the running tool returns, which this records as a removal
// from the queue and, in older versions, nowhere else. It reports whether the
// record is used up.
func (c *claudeReader) queue(r *claudeRecord) bool {
	q := c.queued[r.session]
	switch r.op {
	case "enqueue":
		c.queued[r.session] = append(q, r)
	case "popAll": // back into the input line
		c.queued[r.session] = nil
	case "dequeue": // becomes a user record
		if len(q) > 0 {
			c.queued[r.session] = q[1:]
		}
	case "remove":
		if len(q) == 0 {
			return true
		}
		c.queued[r.session] = q[1:]
		r.text = q[0].text
		return r.text == "" || r.text[0] == '/' // a command of the client
	}
	return true
}

// hasFile reports whether a sub-agent's conversation stands in a file of its
// own, so that what the main file repeats of it need not be read.
func (c *claudeReader) hasFile(agent, session string) bool {
	has, known := c.beside[agent]
	if !known {
		name := "agent-" + filepath.Base(agent) + ".jsonl"
		has = c.in.exists(name) || c.in.exists(filepath.Join(filepath.Base(session), "subagents", name))
		c.beside[agent] = has
	}
	return has
}
