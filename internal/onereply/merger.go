// Package onereply joins the replies to several requests into one reply for a
// client. Between them, the model has called tools that furl answers itself, and
// the client must not see those calls.
package onereply

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Merger joins the replies to several requests into one for the client. It
// changes no byte of a first reply without a call of furl's tools, with one
// exception: Responses repeats the request's tools, from which furl's are
// removed.
type Merger struct {
	w      http.ResponseWriter
	api    wire.API
	events bool                   // the replies are streams
	isOwn  func(name string) bool // recognises furl's tools by name
	used   furl.Usage             // of the earlier replies
	rounds int                    // number of earlier replies

	stream   protocol.Joiner // of streams
	scan     *sse.Scanner
	partial  []byte // of the stream, after the last whole event
	unparsed bool   // the stream cannot be parsed: it is relayed unchanged
	sent     bool   // something was sent to the client

	status      int // of a non-streamed reply
	body        []byte
	passThrough bool // too large to hold, relayed unchanged
	earlier     []*protocol.Reply
}

// New returns a Merger that writes to w, for replies in a format, streamed if
// events is set. own recognises furl's tools by name.
func New(w http.ResponseWriter, api wire.API, events bool, own func(string) bool) *Merger {
	return &Merger{w: w, api: api, events: events, isOwn: own, stream: api.NewJoiner(own)}
}

// Called reports whether the current reply calls furl's tools. It is valid
// once the reply has ended.
func (m *Merger) Called() bool {
	if m.events {
		return m.stream.Called()
	}
	return !m.passThrough && m.api.Calls(m.body, m.isOwn)
}

// Streams reports whether the replies are streams.
func (m *Merger) Streams() bool { return m.events }

// Rounds returns the number of replies before the current one.
func (m *Merger) Rounds() int { return m.rounds }

// Started reports whether anything of the reply was sent to the client.
func (m *Merger) Started() bool { return m.sent }

// Round returns the writer for the next reply.
func (m *Merger) Round() http.ResponseWriter {
	m.scan, m.partial, m.body, m.status = new(sse.Scanner), nil, nil, 0
	if m.rounds == 0 {
		return &roundWriter{m, m.w.Header()}
	}
	return &roundWriter{m, make(http.Header)} // the client has a header
}

// Next starts another reply.
func (m *Merger) Next(reply *protocol.Reply) {
	m.used = m.used.Add(reply.Passes.Replied(reply.Usage))
	m.rounds++
	m.earlier = append(m.earlier, reply)
	if !m.events {
		m.w.Header().Del("Content-Length") // that of one part
	}
	m.stream.Next()
}

// End sends what was held back, changed so that it ends the joined reply.
// called reports that the last reply has calls of furl's tools, which the
// client does not get.
func (m *Merger) End(reply *protocol.Reply, called bool) {
	quiet := called && !otherCalls(reply)
	used := m.used
	if reply != nil {
		used = used.Add(reply.Passes.Replied(reply.Usage))
	}
	switch {
	case m.events:
		m.send(m.stream.End(used, quiet))
	case m.passThrough:
	case m.rounds == 0 && !called:
		if body := m.api.DropTools(m.body, m.isOwn); len(body) < len(m.body) {
			m.body = body
			m.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		m.sendHeld()
	default:
		m.sendJoined(used, quiet)
	}
}

// otherCalls reports whether a reply calls the client's tools.
func otherCalls(reply *protocol.Reply) bool {
	for _, msg := range reply.Messages {
		if slices.ContainsFunc(msg.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall && !b.Own }) {
			return true
		}
	}
	return false
}

// sendJoined sends a non-streamed reply.
func (m *Merger) sendJoined(used furl.Usage, quiet bool) {
	body, err := m.api.JoinBodies(m.earlier, m.body, m.isOwn, used, quiet)
	if err != nil {
		body = m.body // cannot happen: it was decoded before
	}
	body = m.api.DropTools(body, m.isOwn)
	m.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	m.w.WriteHeader(m.status)
	m.send(body)
}

// maxHeldBody is the largest non-streamed reply, in bytes, that is held until it
// is complete.
const maxHeldBody = 32 << 20

// sendHeld sends the held part of a non-streamed reply unchanged.
func (m *Merger) sendHeld() {
	m.passThrough = true
	m.w.WriteHeader(m.status)
	m.send(m.body)
	m.body = nil
}

// Flush handles the end of a stream after its last whole event.
func (m *Merger) Flush() {
	if m.events && !m.unparsed {
		for e, err := range m.scan.Close() {
			if err == nil {
				_ = m.send(m.event(e)) // if the client has disconnected, the relay notices
			}
		}
		m.partial = nil
	}
}

// event returns what the client gets of an event.
func (m *Merger) event(e sse.Event) []byte {
	if !e.HasData {
		e.Data = nil
	}
	return m.stream.Event(e.Type, e.Data, e.Raw)
}

func (m *Merger) send(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	m.sent = true
	_, err := m.w.Write(p)
	return err
}

// roundWriter receives one reply.
type roundWriter struct {
	m      *Merger
	header http.Header
}

// Unwrap supports http.ResponseController.
func (w *roundWriter) Unwrap() http.ResponseWriter { return w.m.w }

// Header implements http.ResponseWriter.
func (w *roundWriter) Header() http.Header { return w.header }

// WriteHeader sends the header of the first stream; that of a non-streamed
// reply waits for its length.
func (w *roundWriter) WriteHeader(status int) {
	m := w.m
	m.status = status
	if m.events && m.rounds == 0 {
		m.w.WriteHeader(status)
		m.sent = true
	}
}

// Flush flushes a stream. A held body has nothing to flush.
func (w *roundWriter) Flush() {
	if w.m.sent {
		_ = http.NewResponseController(w.m.w).Flush()
	}
}

// Write receives a piece of the reply.
func (w *roundWriter) Write(p []byte) (int, error) {
	m := w.m
	switch {
	case !m.events && (m.passThrough || len(m.body)+len(p) <= maxHeldBody):
		if !m.passThrough {
			m.body = append(m.body, p...)
			return len(p), nil
		}
		return m.w.Write(p)
	case !m.events:
		m.body = append(m.body, p...)
		m.sendHeld()
		return len(p), nil
	case m.unparsed:
		return m.w.Write(p)
	}
	m.partial = append(m.partial, p...)
	var out bytes.Buffer
	for e, err := range m.scan.Feed(p) {
		if err != nil { // the event is too large
			m.unparsed = true
			out.Write(m.partial)
			break
		}
		m.partial = m.partial[len(e.Raw):]
		out.Write(m.event(e))
	}
	if len(m.partial) == 0 {
		m.partial = nil
	}
	if err := m.send(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
