// Package onereply makes one answer for a client of the answers to several
// requests: between them a model has called tools that are furl's to answer,
// and the client is not to see that.
package onereply

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/wire"
)

// Merger makes one answer for the client of the answers to several requests.
// In what the first one answers without a call of recall it changes no byte, but
// that Responses repeats the request's tools: there it takes furl's out.
type Merger struct {
	w      http.ResponseWriter
	api    wire.API
	events bool                   // the answers are streams
	own    func(name string) bool // tells calls of recall from others
	used   furl.Usage             // by the answers before
	rounds int                    // before

	stream furl.Joiner // of streams
	scan   *sse.Scanner
	rest   []byte // of the stream, behind the last whole event
	plain  bool   // the stream cannot be read: it goes on as it comes
	sent   bool   // something has gone to the client

	status int // of an answer that is no stream
	body   []byte
	spilt  bool // it is too large to hold and goes on as it comes
	before []*furl.Reply
}

// New gives a Merger that writes to w, for answers in a format that are streams
// or not. own tells the tools that are furl's to answer by their names.
func New(w http.ResponseWriter, api wire.API, events bool, own func(string) bool) *Merger {
	return &Merger{w: w, api: api, events: events, own: own, stream: api.NewJoiner(own)}
}

// Called reports whether the answer at hand calls recall. It may be asked once
// the answer has ended.
func (m *Merger) Called() bool {
	if m.events {
		return m.stream.Called()
	}
	return !m.spilt && m.api.Calls(m.body, m.own)
}

// Streams reports whether the answers are streams.
func (m *Merger) Streams() bool { return m.events }

// Rounds is how many answers there were before the one at hand.
func (m *Merger) Rounds() int { return m.rounds }

// Begun reports whether the client has anything of the answer.
func (m *Merger) Begun() bool { return m.sent }

// Round is what the next answer is relayed to.
func (m *Merger) Round() http.ResponseWriter {
	m.scan, m.rest, m.body, m.status = new(sse.Scanner), nil, nil, 0
	if m.rounds == 0 {
		return &roundWriter{m, m.w.Header()}
	}
	return &roundWriter{m, make(http.Header)} // the client has a header
}

// Next says that another answer follows.
func (m *Merger) Next(reply *furl.Reply) {
	m.used = m.used.Add(reply.Usage)
	m.rounds++
	m.before = append(m.before, reply)
	if !m.events {
		m.w.Header().Del("Content-Length") // that of one part
	}
	m.stream.Next()
}

// End sends what was held back, changed so that it ends the one answer. called
// says that the last one has calls of recall, which the client does not get.
func (m *Merger) End(reply *furl.Reply, called bool) {
	quiet := called && !otherCalls(reply)
	used := m.used
	if reply != nil {
		used = used.Add(reply.Usage)
	}
	switch {
	case m.events:
		m.send(m.stream.End(used, quiet))
	case m.spilt:
	case m.rounds == 0 && !called:
		if body := m.api.DropTools(m.body, m.own); len(body) < len(m.body) {
			m.body = body
			m.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		m.spill()
	default:
		m.whole(used, quiet)
	}
}

// otherCalls reports whether a reply calls tools of the client.
func otherCalls(reply *furl.Reply) bool {
	for _, msg := range reply.Messages {
		if slices.ContainsFunc(msg.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall && !b.Own }) {
			return true
		}
	}
	return false
}

// whole sends an answer that is no stream.
func (m *Merger) whole(used furl.Usage, quiet bool) {
	body, err := m.api.JoinBodies(m.before, m.body, m.own, used, quiet)
	if err != nil {
		body = m.body // cannot be: it was understood
	}
	body = m.api.DropTools(body, m.own)
	m.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	m.w.WriteHeader(m.status)
	m.send(body)
}

// maxHeld is the largest answer, in bytes, that is held until it is whole.
const maxHeld = 32 << 20

// spill sends what was held of an answer that is no stream, as it came.
func (m *Merger) spill() {
	m.spilt = true
	m.w.WriteHeader(m.status)
	m.send(m.body)
	m.body = nil
}

// Flush takes what a stream ended with that is no whole event.
func (m *Merger) Flush() {
	if m.events && !m.plain {
		for e, err := range m.scan.Close() {
			if err == nil {
				_ = m.send(m.event(e)) // if the client has gone, the relay knows
			}
		}
		m.rest = nil
	}
}

// event gives what the client gets of an event.
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

// roundWriter takes one answer.
type roundWriter struct {
	m      *Merger
	header http.Header
}

// Unwrap lets what controls the client's connection find it.
func (w *roundWriter) Unwrap() http.ResponseWriter { return w.m.w }

// Header implements http.ResponseWriter.
func (w *roundWriter) Header() http.Header { return w.header }

// WriteHeader sends the header of the first stream; that of a whole body waits
// for its length.
func (w *roundWriter) WriteHeader(status int) {
	m := w.m
	m.status = status
	if m.events && m.rounds == 0 {
		m.w.WriteHeader(status)
		m.sent = true
	}
}

// Flush sends on what a stream has so far. There is nothing to be flushed of a
// body that is held.
func (w *roundWriter) Flush() {
	if w.m.sent {
		_ = http.NewResponseController(w.m.w).Flush()
	}
}

// Write takes a piece of the answer.
func (w *roundWriter) Write(p []byte) (int, error) {
	m := w.m
	switch {
	case !m.events && (m.spilt || len(m.body)+len(p) <= maxHeld):
		if !m.spilt {
			m.body = append(m.body, p...)
			return len(p), nil
		}
		return m.w.Write(p)
	case !m.events:
		m.body = append(m.body, p...)
		m.spill()
		return len(p), nil
	case m.plain:
		return m.w.Write(p)
	}
	m.rest = append(m.rest, p...)
	var out bytes.Buffer
	for e, err := range m.scan.Feed(p) {
		if err != nil { // no event is so large
			m.plain = true
			out.Write(m.rest)
			break
		}
		m.rest = m.rest[len(e.Raw):]
		out.Write(m.event(e))
	}
	if len(m.rest) == 0 {
		m.rest = nil
	}
	if err := m.send(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
