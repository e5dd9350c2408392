package transcript

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// lostSummary replaces an encrypted summary written by the service, which the
// recording does not contain.
const lostSummary = "[The conversation so far was compacted. The summary is not part of the recording.]"

// compaction reads a compacted record. The record says what the model saw
// from then on: the message built from a local summary, a
// replacement_history, or both. Items of the replacement that are already on
// the path stay visible in their place. Everything else is hidden under a
// marker with the new items.
//
// If the replacement has another order than the recording, its order is lost:
// Codex moves its context messages after the older messages of the user.
func (c *codex) compaction(n int, at time.Time, p object) {
	c.endReply()
	c.abortOpen(at, n)
	if c.b.Compactions >= maxCuts {
		c.b.in.skip(n, "more than %d compactions", maxCuts)
		return
	}
	var history []json.RawMessage
	replaced := lenient(p["replacement_history"], &history) == nil && p.kind("replacement_history") == '['

	keep := map[ref]bool{}
	var show []*furl.Message
	if replaced {
		keep, show = c.replaced(history)
	} else {
		for _, r := range c.b.soFar() {
			keep[r] = c.b.entries[r-1].msg.Role != furl.RoleAssistant && !hasResult(c.b.entries[r-1].msg)
		}
	}
	summary := wordsOf(show)
	if text := p.str("message"); text != "" && summary == "" {
		summary, show = text, append(show, c.words(text)...)
	}
	if len(show) == 0 {
		c.b.in.note("line %d: the summary of this compaction is not in the file; a placeholder replaces it", n)
		show = c.words(lostSummary)
	}
	cut := compaction{
		stage: "compact", reason: "Codex compacted the conversation", show: show, before: c.last.Total,
		summary: &furl.Summary{Text: summary, Model: c.model},
	}
	if c.unplaced != nil { // the request for the summary
		cut.summary.Usage, c.unplaced = c.unplaced.Usage, nil
	}
	for _, r := range c.b.soFar() {
		if !keep[r] {
			cut.hide = append(cut.hide, r)
		}
	}
	r := c.b.compact(at, n, cut)
	c.compacted = c.b.entries[r-1].cut
}

// words returns a message of the user as an item.
func (c *codex) words(text string) []*furl.Message {
	msgs, _ := newRenderer(furl.FormatResponses, c.model).user([]piece{{kind: furl.KindText, text: text}})
	return msgs
}

// replaced splits the items of a replacement history into those already on
// the path and new ones.
func (c *codex) replaced(history []json.RawMessage) (keep map[ref]bool, show []*furl.Message) {
	hidden := map[ref]bool{} // by earlier compactions
	for _, r := range c.b.path(c.b.last) {
		if cut := c.b.entries[r-1].cut; cut != nil {
			for _, h := range cut.hide {
				hidden[h] = true
			}
		}
	}
	at := map[furl.Digest][]ref{} // oldest first
	for _, r := range c.b.soFar() {
		if hidden[r] {
			continue
		}
		d := c.b.entries[r-1].msg.Digest
		at[d] = append(at[d], r)
	}
	keep = map[ref]bool{}
	// From the end, so that of two equal messages the newer one is kept.
	for _, raw := range slices.Backward(history) {
		if c.b.in.usageOnly {
			raw = c.brief(objectOf(raw), raw)
		}
		m, err := c.b.codec.DecodeMessage(raw)
		if err != nil || len(m.Blocks) == 0 || m.Digest.IsZero() {
			continue // reasoning has no digest, and is useless without its reply
		}
		if n := len(at[m.Digest]); n > 0 {
			keep[at[m.Digest][n-1]] = true
			at[m.Digest] = at[m.Digest][:n-1]
			continue
		}
		if !hasResult(m) && m.Blocks[0].Kind != furl.KindCall { // a call without its result, or a result without its call
			show = append(show, m)
		}
	}
	slices.Reverse(show)
	return keep, show
}

// wordsOf joins the text of messages.
func wordsOf(msgs []*furl.Message) string {
	var texts []string
	for _, m := range msgs {
		for i := range m.Blocks {
			if t := m.Blocks[i].Text; t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
