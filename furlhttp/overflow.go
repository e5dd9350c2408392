package furlhttp

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Some providers refuse a prompt as too long only when their stream has begun: in
// an event after events that say nothing yet. As long as only such events have
// arrived, the caller gets nothing, so that a shorter prompt can be sent instead.
// With the first event that says something, all are passed on as they arrived.

// Bounds of what is held back. Providers refuse a prompt within moments, and a
// caller that gets nothing for long may give up.
const (
	maxHeldBytes = 4 << 20 // Responses repeats instructions and tools, twice
	maxHeldTime  = 10 * time.Second
)

// recoverOverflow looks at a reply before the caller gets any of it. If the
// prompt was refused as too long, and can be made shorter, the shorter one is
// sent, once per exchange. Any other reply is returned to be read from its
// beginning.
func (t *Transport) recoverOverflow(q *query, x *exchange.Exchange, resp *http.Response) (*http.Response, error) {
	if x.Session == nil || x.Dry || x.Recovered != nil || encoded(resp) {
		return resp, nil // it would not help
	}
	over := overflowIn(q.api, resp)
	if over == nil || !x.Overflow(q.Context(), over) {
		return resp, nil
	}
	_ = resp.Body.Close()
	t.o.Hooks.shortened(&x.Exchange)
	return t.roundTrip(q, x)
}

// maxSmall bounds the replies in one piece that are looked at although their
// status is not an error's.
const maxSmall = 64 << 10

// overflowIn returns what a reply says of a prompt that is too long, nil if it
// says something else. The reply can be read from its beginning afterwards.
func overflowIn(api wire.API, resp *http.Response) *protocol.Overflow {
	if resp.StatusCode < 400 && wire.IsStream(resp.Header.Get("Content-Type")) {
		return overflowInStream(api, resp)
	}
	// Some servers answer with an error and the status 200.
	if resp.StatusCode < 400 && (resp.ContentLength < 0 || resp.ContentLength > maxSmall) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxReply))
	resp.Body = unread(resp.Body, body, err)
	if err != nil || resp.StatusCode < 400 && !bytes.Contains(body, []byte(`"error"`)) {
		return nil
	}
	reply, err := api.DecodeReply(resp.StatusCode, body)
	if err != nil || reply.Refusal == nil {
		return nil
	}
	return reply.Overflow
}

// unread returns a body that begins with what was read of it, and then ends with
// the error, if there was one.
func unread(body io.ReadCloser, read []byte, err error) io.ReadCloser {
	var rest io.Reader = body
	if err != nil {
		rest = failing{err}
	}
	return &joined{io.MultiReader(bytes.NewReader(read), rest), body}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// overflowInStream looks at the beginning of a stream, up to the first event that
// says something.
func overflowInStream(api wire.API, resp *http.Response) *protocol.Overflow {
	s := &streamStart{api: api, asm: api.NewAssembler()}
	s.events.Max = maxHeldBytes
	said := false
	resp.Body = peek(resp.Body, maxHeldBytes, maxHeldTime, func(piece []byte) bool {
		said = s.feed(piece)
		return said
	})
	if !said { // an event without an end may be left
		for e, err := range s.events.Close() {
			if err != nil || s.event(e) {
				break
			}
		}
	}
	return s.overflow
}

// streamStart is the beginning of a stream.
type streamStart struct {
	api      wire.API
	events   sse.Scanner
	asm      protocol.Assembler
	overflow *protocol.Overflow
}

// feed takes the next bytes and reports whether they say something.
func (s *streamStart) feed(piece []byte) bool {
	for e, err := range s.events.Feed(piece) {
		if err != nil || s.event(e) {
			return true
		}
	}
	return false
}

// event reports whether an event says something.
func (s *streamStart) event(e sse.Event) bool {
	if !e.HasData || len(e.Data) == 0 {
		return false // a sign of life
	}
	if s.asm.Feed(e.Type, e.Data) != nil {
		return true
	}
	if s.api.Silent(e.Type, e.Data) {
		return false
	}
	if reply, err := s.asm.Reply(); err == nil && reply.Refusal != nil {
		s.overflow = reply.Overflow
	}
	return true
}
