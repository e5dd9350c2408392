package exchange

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// furl handles two refusals of a prompt itself: it is too long, or its thinking is not
// valid there. Some providers refuse a prompt only after their stream has started:
// in an event that follows events without content. So a stream is held back until
// its first event with content. If that is such a refusal, furl sends another prompt
// instead; otherwise the caller gets all events unchanged.

// Limits of what is held back. Providers refuse a prompt within moments, and
// clients time out if they receive nothing.
const (
	maxHeldBytes = 4 << 20 // Responses repeats instructions and tools, twice
	maxHeldTime  = 10 * time.Second
)

// recoverRefusal checks a reply before the caller reads it. A prompt that was refused as
// too long is sent again shorter, and one whose thinking was refused is sent again without
// thinking, as often as Overflow and LeaveOutThinking say. Any other reply is returned unread.
func (x *Exchange) recoverRefusal(ctx context.Context, resp *http.Response) (*http.Response, error) {
	for {
		if x.Dry || x.overflows >= x.maxOverflows() && x.ThinkingLeftOut || hasEncoding(resp) {
			return resp, nil // not recoverable
		}
		refused := refusedPrompt(x.api, resp)
		if refused == nil || !x.Overflow(ctx, refused.Overflow) && !x.LeaveOutThinking(ctx, refused.ThinkingRefused) {
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		if resp, err = x.post(ctx); err != nil {
			return resp, err
		}
	}
}

// maxErrorBody is the largest non-streamed reply, in bytes, that is searched for an
// error although its status is not an error.
const maxErrorBody = 64 << 10

// refusedPrompt returns the reply that refuses a prompt for a reason that furl can remove, nil
// if it is another reply. The reply can still be read from its beginning.
func refusedPrompt(api wire.API, resp *http.Response) *protocol.Reply {
	if resp.StatusCode < 400 && wire.IsStream(resp.Header.Get("Content-Type")) {
		return refusedInStream(api, resp)
	}
	// Some servers send an error with status 200.
	if resp.StatusCode < 400 && (resp.ContentLength < 0 || resp.ContentLength > maxErrorBody) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxReply))
	resp.Body = withPrefix(resp.Body, body, err)
	if err != nil || resp.StatusCode < 400 && !bytes.Contains(body, []byte(`"error"`)) {
		return nil
	}
	reply, err := api.DecodeReply(resp.StatusCode, body)
	if err != nil || !isRecoverable(reply) {
		return nil
	}
	return reply
}

// isRecoverable reports whether a reply refuses a prompt for a reason that furl can remove.
func isRecoverable(reply *protocol.Reply) bool {
	return reply.Refusal != nil && (reply.Overflow != nil || reply.ThinkingRefused != nil)
}

// withPrefix returns a body that starts with the bytes already read. It
// continues with the rest of body, or ends with err if that is not nil.
func withPrefix(body io.ReadCloser, read []byte, err error) io.ReadCloser {
	var rest io.Reader = body
	if err != nil {
		rest = errReader{err}
	}
	return &splitBody{io.MultiReader(bytes.NewReader(read), rest), body}
}

type errReader struct{ err error }

func (f errReader) Read([]byte) (int, error) { return 0, f.err }

// refusedInStream is refusedPrompt for a stream. It reads up to the first event with
// content.
func refusedInStream(api wire.API, resp *http.Response) *protocol.Reply {
	s := &streamPrefix{api: api, asm: api.NewAssembler()}
	s.events.Max = maxHeldBytes
	hasContent := false
	resp.Body = holdBack(resp.Body, maxHeldBytes, maxHeldTime, func(piece []byte) bool {
		hasContent = s.feed(piece)
		return hasContent
	})
	if !hasContent { // there may be an unterminated event
		for e, err := range s.events.Close() {
			if err != nil || s.event(e) {
				break
			}
		}
	}
	return s.refused
}

// streamPrefix reads the beginning of a stream.
type streamPrefix struct {
	api     wire.API
	events  sse.Scanner
	asm     protocol.Assembler
	refused *protocol.Reply
}

// feed adds the next bytes and reports whether they contain an event with content.
func (s *streamPrefix) feed(piece []byte) bool {
	for e, err := range s.events.Feed(piece) {
		if err != nil || s.event(e) {
			return true
		}
	}
	return false
}

// event reports whether an event has content. One whose decoding panics counts as content:
// the panic is reported when the reply is decoded.
func (s *streamPrefix) event(e sse.Event) (content bool) {
	defer func() {
		if recover() != nil {
			content = true
		}
	}()
	if !e.HasData || len(e.Data) == 0 {
		return false // keep-alive
	}
	if s.asm.Feed(e.Type, e.Data) != nil {
		return true
	}
	if s.api.Silent(e.Type, e.Data) {
		return false
	}
	if reply, err := s.asm.Reply(); err == nil && isRecoverable(reply) {
		s.refused = reply
	}
	return true
}
