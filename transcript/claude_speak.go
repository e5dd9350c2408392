package transcript

import (
	"cmp"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// claudeSpeaker adds the messages of a thread to a builder in the order of
// the file, and rewinds where the user did.
type claudeSpeaker struct {
	*builder
	thread *claudeThread
	path   []*claudeNode // the current branch
	sent   *claudeSent
	held   []*claudeNode // since the last reply, whose bytes a request may need
}

// say adds a node; a reply is followed immediately by the results of its
// calls.
func (s *claudeSpeaker) say(n *claudeNode) {
	s.switchTo(n)
	r := n.records[0]
	switch n.kind {
	case claudeReply:
		s.reply(n)
	case claudeResults:
		s.results(n)
	case claudeSummary:
		s.summary(n)
	case claudeCleared:
		s.clear(r.at, r.line, stringsOf(r.boundary["compactedToolIds"]), "[Old tool result content cleared]")
	default:
		if text := cmp.Or(r.rendered, r.text); text != "" {
			if s.thread.brief {
				text = briefOf(text)
			}
			s.blocks(r.at, r.line, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: text})
		} else if raw := s.thread.spliced("user", r.blocks); raw != nil {
			s.raw(r.at, r.line, raw)
		}
	}
	s.appendToPath(n)
	s.held = append(s.held, n)
	if n.kind == claudeReply || len(s.sent.byID) == 0 {
		for _, n := range s.held {
			s.release(n)
		}
		s.held = s.held[:0]
	}
	if n.results != nil {
		s.say(n.results)
	}
}

// release frees the bytes from which a node's message was built.
func (s *claudeSpeaker) release(n *claudeNode) {
	for _, r := range n.records {
		for i := range r.blocks {
			s.in.memory -= int64(len(r.blocks[i].raw))
			r.blocks[i].raw = nil
		}
	}
}

func (s *claudeSpeaker) appendToPath(n *claudeNode) {
	n.said, n.ref, n.depth = true, s.last, len(s.path)
	if tip := s.current(); tip != nil {
		n.prev, n.replies, n.prompts = tip, tip.replies, tip.prompts
	}
	switch n.kind {
	case claudeReply:
		n.replies++
	case claudePrompt:
		n.prompts++
	}
	s.path = append(s.path, n)
}

func (s *claudeSpeaker) current() *claudeNode {
	if len(s.path) == 0 {
		return nil
	}
	return s.path[len(s.path)-1]
}

// switchTo rewinds to the node that n follows, if that is not the current
// position. Not every fork in the tree is a rewind: results of parallel
// calls, messages added by the client and text typed meanwhile are siblings
// and were all sent. A record that follows something older than the newest
// reply is a rewind. So is a prompt beside another prompt, because it was
// typed to replace that one.
func (s *claudeSpeaker) switchTo(n *claudeNode) {
	tip, to := s.current(), n.parent
	if n.orphan || tip == nil {
		return
	}
	if to == nil {
		if n.kind == claudePrompt && tip.replies+tip.prompts > 0 {
			s.rewind(n.records[0].at, 0)
			s.path = s.path[:0]
		}
		return
	}
	if to.cut != nil && to.cut.said {
		to = to.cut
	}
	if to.results != nil && to.results.said {
		to = to.results
	}
	if to == tip || !to.said {
		return
	}
	if to.depth < len(s.path) && s.path[to.depth] == to { // on this branch
		if n.kind == claudeSummary || n.kind == claudeCleared || n.kind == claudeResults {
			return
		}
		if to.replies == tip.replies && (n.kind != claudePrompt || to.prompts == tip.prompts) {
			return
		}
	}
	s.rewind(n.records[0].at, to.ref)
	s.path = s.path[:0]
	for p := to; p != nil; p = p.prev {
		s.path = append(s.path, p)
	}
	slices.Reverse(s.path)
}

// reply adds the response that the node's records form. It takes the usage of
// the record written last, when the whole output was known.
func (s *claudeSpeaker) reply(n *claudeNode) {
	first, last := n.records[0], n.records[len(n.records)-1]
	ex := furl.Exchange{ResponseID: first.id}
	calls := make(map[string]bool)
	var blocks []part
	for _, r := range n.records {
		for _, b := range r.blocks {
			if b.typ == "tool_use" {
				if calls[b.id] {
					continue
				}
				calls[b.id] = true
			}
			blocks = append(blocks, b)
		}
		ex.Model = cmp.Or(r.model, ex.Model)
		ex.Stop = cmp.Or(r.stop, ex.Stop)
		if len(r.usage) > 0 {
			if u, passes, terms, err := anthropic.DecodeUsage(r.usage); err != nil {
				s.in.skip(r.line, "%v", err)
			} else if passes.Replied(u).Output >= ex.Passes.Replied(ex.Usage).Output {
				ex.Usage, ex.Passes, ex.Terms = u, passes, terms
			}
		}
	}
	raw := s.thread.spliced("assistant", blocks)
	if raw == nil {
		return
	}
	if ex.Model != claudeSynthetic {
		s.request(n, ex)
	}
	if s.raw(last.at, first.line, raw) != 0 {
		s.replied()
	}
}

// request adds the request of a reply, as it was recorded if it was, with the time of that record.
func (s *claudeSpeaker) request(n *claudeNode, ex furl.Exchange) {
	r := s.asSent(n)
	if r != nil {
		if shape := s.sent.shapes[r.shape]; shape != nil {
			ex.Preamble = shape.digest
			s.Preamble = slices.DeleteFunc(slices.Clone(shape.preamble), func(t furl.Block) bool { return t.Deferred })
		}
	}
	s.builder.reply(n.records[0].at, ex)
	if s.in.refused != nil {
		return
	}
	e := &s.entries[s.last-1]
	if r != nil {
		e.body = s.bodyOf(r)
	}
	if at := s.sent.times[n.records[0].request]; !at.IsZero() {
		e.at = at
	}
}

// results adds the results of a reply's calls as one message, in the order of
// the calls, followed by the other blocks of these records.
func (s *claudeSpeaker) results(n *claudeNode) {
	order := make(map[string]int)
	for _, r := range n.parent.records {
		for _, b := range r.blocks {
			if b.typ == "tool_use" {
				order[b.id] = len(order)
			}
		}
	}
	var blocks, rest []part
	for _, r := range n.records {
		for _, b := range r.blocks {
			if b.typ == "tool_result" {
				blocks = append(blocks, b)
			} else {
				rest = append(rest, b)
			}
		}
	}
	rank := func(b part) int {
		if i, ok := order[b.answer]; ok {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(blocks, func(a, b part) int { return rank(a) - rank(b) })
	if raw := s.thread.spliced("user", append(blocks, rest...)); raw != nil {
		s.raw(n.records[len(n.records)-1].at, n.records[0].line, raw)
	}
}

// summary adds a compaction.
func (s *claudeSpeaker) summary(n *claudeNode) {
	r, last := n.records[0], n.records[len(n.records)-1]
	var raw []byte
	if last.summary {
		raw = s.thread.spliced("user", last.blocks)
	}
	if raw == nil {
		s.Compactions++
		s.in.note("the compaction on line %d has no summary", r.line)
		return
	}
	m, err := s.codec.DecodeMessage(raw)
	if err != nil {
		s.Compactions++
		s.in.skip(last.line, "%v", err)
		return
	}
	c := compaction{
		all: true, show: []*furl.Message{m}, stage: "compact", reason: r.boundary.str("trigger"),
		before:  max(r.boundary.num("preTokens"), r.boundary.num("pre_tokens")),
		after:   max(r.boundary.num("postTokens"), r.boundary.num("post_tokens")),
		summary: &furl.Summary{Text: textOfBlocks(m), Model: s.Model}, // its usage is not recorded
	}
	for _, kept := range s.path {
		if kept.cut == n {
			c.keep = append(c.keep, kept.ref)
		}
	}
	s.compact(last.at, r.line, c)
	if c.reason == "auto" {
		s.compactedAt(c.before)
	}
}

// Claude Code compacts by itself shortly before the window is full: 13,000 tokens
// before the room for a reply begins, which has been 20,000 or 32,000 tokens. Its
// models have one of two windows. Which one is not recorded.
const (
	claudeWindow     = 200_000
	claudeLongWindow = 1_000_000
)

// compactedAt notes the window of a model whose prompt of that size was compacted
// automatically: the smaller one in which the prompt fits.
func (s *claudeSpeaker) compactedAt(prompt int) {
	window := claudeWindow
	if prompt > window {
		window = claudeLongWindow
	}
	if prompt > 0 && prompt <= claudeLongWindow {
		s.window(s.Model, window)
	}
}

// checkWindows drops a window that is smaller than a prompt of the model: it changed
// during the session.
func (s *claudeSpeaker) checkWindows() {
	for i := range s.entries {
		if ex := s.entries[i].ex; ex != nil && s.Windows[ex.Model] == claudeWindow && ex.Usage.Prompt() > claudeWindow {
			s.window(ex.Model, claudeLongWindow)
		}
	}
}

// textOfBlocks returns the text of a message.
func textOfBlocks(m *furl.Message) string {
	var out []byte
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindText {
			if len(out) > 0 {
				out = append(out, '\n')
			}
			out = append(out, b.Text...)
		}
	}
	return string(out)
}
