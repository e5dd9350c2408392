package transcript

import (
	"bytes"
	"strings"
	"time"
)

// Rollouts written before Codex wrapped its records. The Rust client of
// summer 2025 wrote JSON Lines: first a session header, then items, with
// {"record_type": "state"} between them. The TypeScript client before it
// wrote one JSON object {session, items}. Neither records the model, the
// usage, or any time except the start of the session.

// isOldCodex reports whether a file is in one of these formats.
func isOldCodex(p *probe) bool {
	if p.is('{') {
		o := p.objects[0]
		return o.kind("items") == '[' && o.object("session").has("id", "timestamp")
	}
	return p.is('l') && (oldCodexHead(p.objects[0]) || p.any(func(o object) bool { return o.has("record_type") || oldCodexItem(o) }))
}

// oldCodexHead reports whether an object is the header of such a session.
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

// oldObject reads the single object of the TypeScript client.
func (c *codex) oldObject(o object, all []byte) {
	at := c.oldHead(o.object("session"))
	for _, raw := range c.b.in.elements(all, "items") {
		c.item(0, at, objectOf(raw), raw)
	}
}

// oldHead reads the header of a session and returns its time.
func (c *codex) oldHead(head object) time.Time {
	if c.b.ID == "" {
		c.b.ID = head.str("id")
		c.b.root = c.b.ID
		c.b.preamble(head.str("instructions"))
	}
	return parseTime(head.str("timestamp"))
}

// oldLine reads a line without a wrapper and reports whether it is one.
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
