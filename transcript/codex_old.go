package transcript

import (
	"bytes"
	"strings"
	"time"
)

// Rollouts from before Codex wrapped its records. The Rust client of summer
// 2025 wrote JSON Lines whose first is the head of the session and whose
// others are items, with {"record_type": "state"} between them; the client in
// TypeScript before it wrote one JSON object {session, items}. Neither names
// the model, usage, or times but the session's own.

// isOldCodex reports whether a file is one of those.
func isOldCodex(p *probe) bool {
	if p.is('{') {
		o := p.objects[0]
		return o.kind("items") == '[' && o.object("session").has("id", "timestamp")
	}
	return p.is('l') && (oldCodexHead(p.objects[0]) || p.any(func(o object) bool { return o.has("record_type") || oldCodexItem(o) }))
}

// oldCodexHead reports whether an object is the head of such a session.
func oldCodexHead(o object) bool {
	return o.has("id", "timestamp") && !o.has("type") && (o.has("instructions") || o.has("git"))
}

// oldCodexItem reports whether an object is an item that only the Responses
// API has.
func oldCodexItem(o object) bool {
	switch typ := o.str("type"); typ {
	case "message":
		part := firstIn(o["content"]).str("type")
		return part == "input_text" || part == "output_text"
	default:
		return o.has("call_id") && (strings.HasSuffix(typ, "_call") || strings.HasSuffix(typ, "_call_output"))
	}
}

// oldObject reads the one object of the client in TypeScript.
func (c *codex) oldObject(o object, all []byte) {
	at := c.oldHead(o.object("session"))
	for _, raw := range c.b.in.elements(all, "items") {
		c.item(0, at, objectOf(raw), raw)
	}
}

// oldHead reads the head of a session, and gives its time.
func (c *codex) oldHead(head object) time.Time {
	if c.b.ID == "" {
		c.b.ID = head.str("id")
		c.b.preamble(head.str("instructions"))
	}
	return parseTime(head.str("timestamp"))
}

// oldLine reads a line without a wrapper, and reports whether it is one.
func (c *codex) oldLine(n int, o object, raw []byte) bool {
	switch {
	case o.has("payload"):
		return false
	case o.has("record_type"):
	case oldCodexHead(o):
		c.begun = c.oldHead(o)
	case o.kind("session") == '{':
		c.oldObject(o, raw)
	case o.has("type"):
		c.item(n, c.begun, o, bytes.TrimSpace(raw))
	default:
		c.b.in.skip(n, "a record without a type")
	}
	return true
}
