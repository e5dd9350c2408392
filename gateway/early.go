package gateway

import (
	"bytes"
	"context"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Some providers say that a prompt is too long only after their stream has
// begun: in an event behind those that say nothing yet. While only such have
// come, the client gets nothing, so that a shorter prompt can still be sent
// instead. They are let go with the first event that says something, in the
// bytes they came in.

// Bounds of what is held back. Providers refuse a prompt within moments; a
// client that hears nothing for long may give up.
const (
	maxEarly  = 4 << 20 // Responses repeats instructions and tools, twice
	earlyTime = 10 * time.Second
)

// overflow looks at an answer before the client gets any of it: if it says
// that the prompt was too long, and that can be made shorter, the shorter one
// is sent, once. Any other answer is given back as it came.
func (g *Gateway) overflow(ctx context.Context, rt *route, x *session.Exchange, out *upstream.Request, resp *upstream.Response) (*upstream.Response, error) {
	if x.Session == nil || x.Dry || x.Recovered != nil {
		return resp, nil // it would not help
	}
	over, err := tooLong(rt.codec, resp)
	if err != nil {
		_ = resp.Close()
		return nil, err
	}
	if over == nil || !x.Overflow(ctx, over) {
		return resp, nil
	}
	_ = resp.Close() // nobody is to see it
	g.metrics.recovered.Inc()
	out.Body = x.Body
	return rt.up.Do(ctx, out)
}

// maxSmall bounds what is looked at of an answer in one piece that is none of
// an error's status.
const maxSmall = 64 << 10

// tooLong gives what an answer says of a prompt that is too long, nil if it
// says something else. It can be relayed afterwards as if nothing had been
// read.
func tooLong(c wire.API, resp *upstream.Response) (*furl.Overflow, error) {
	if resp.Status < 400 && resp.Events() {
		return early(c, resp), nil
	}
	// Compatible servers answer with an error under the status 200, too.
	if resp.Status < 400 && (resp.Length() < 0 || resp.Length() > maxSmall) {
		return nil, nil
	}
	body, err := resp.ReadAll()
	if body == nil && err != nil {
		return nil, err
	}
	resp.Unread(body)
	if err != nil || resp.Status < 400 && !bytes.Contains(body, []byte(`"error"`)) {
		return nil, nil
	}
	reply, err := c.DecodeReply(resp.Status, body)
	if err != nil || reply.Refusal == nil {
		return nil, nil // what it is, the client may know
	}
	return reply.Overflow, nil
}

// early looks at the beginning of a stream and gives the refusal of a prompt
// that is too long if that is all there is. Whatever it was, resp is to be
// relayed as if nothing had been read.
func early(c wire.API, resp *upstream.Response) *furl.Overflow {
	if resp.Encoding != "" {
		return nil
	}
	b := &beginning{codec: c, asm: c.NewAssembler()}
	b.scanner.Max = maxEarly
	said := false
	resp.Peek(maxEarly, earlyTime, func(piece []byte) bool {
		said = b.feed(piece)
		return said
	})
	if !said { // what is left has no end yet
		for e, err := range b.scanner.Close() {
			if err != nil || b.event(e) {
				break
			}
		}
	}
	return b.overflow
}

// beginning is that of a stream.
type beginning struct {
	codec    wire.API
	scanner  sse.Scanner
	asm      furl.Assembler
	overflow *furl.Overflow
}

// feed takes the next bytes and reports whether they say something.
func (b *beginning) feed(piece []byte) bool {
	for e, err := range b.scanner.Feed(piece) {
		if err != nil || b.event(e) {
			return true
		}
	}
	return false
}

// event reports whether an event says something.
func (b *beginning) event(e sse.Event) bool {
	if !e.HasData || len(e.Data) == 0 {
		return false // a sign of life
	}
	if b.asm.Feed(e.Type, e.Data) != nil {
		return true
	}
	if b.codec.Silent(e.Type, e.Data) {
		return false
	}
	if reply, err := b.asm.Reply(); err == nil && reply.Refusal != nil {
		b.overflow = reply.Overflow
	}
	return true
}
