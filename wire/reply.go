package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// MaxReply is the largest reply that is decoded, in bytes, events included.
const MaxReply = 64 << 20

// ErrReplyTooLarge is the error of a reply of more than MaxReply bytes.
var ErrReplyTooLarge = fmt.Errorf("the reply is larger than %d MiB", MaxReply>>20)

// ReplyReader decodes a provider's reply, streamed or not, from the pieces in
// which its body arrives. It is for one reply and one goroutine.
type ReplyReader struct {
	api    API
	status int
	most   int64              // bytes that are decoded
	stream protocol.Assembler // nil: the reply comes in one piece
	events sse.Scanner
	read   int64
	body   bytes.Buffer
	ended  bool
	err    error // nothing more is decoded
	notify func(protocol.Delta)
}

// Notify makes Write call f with each piece of the reply's text and thinking, and
// the start of each call. Replies that are not streamed have no pieces.
func (r *ReplyReader) Notify(f func(protocol.Delta)) { r.notify = f }

// NewReplyReader returns a ReplyReader for a reply with this status and content
// type.
func NewReplyReader(api API, status int, contentType string) *ReplyReader {
	r := &ReplyReader{api: api, status: status, most: MaxReply}
	if status < 400 && IsStream(contentType) {
		r.stream = api.NewAssembler()
	}
	return r
}

// IsStream reports whether a content type is that of server-sent events.
func IsStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), sse.ContentType)
}

// Write decodes the next piece of the body. The error is always nil; Reply
// returns what is wrong with the reply.
func (r *ReplyReader) Write(p []byte) (int, error) {
	r.read += int64(len(p))
	switch {
	case r.err != nil:
	case r.read > r.most:
		r.err, r.body = ErrReplyTooLarge, bytes.Buffer{}
	case r.stream != nil:
		r.feed(p)
	default:
		r.body.Write(p)
	}
	return len(p), nil
}

func (r *ReplyReader) feed(p []byte) {
	for e, err := range r.events.Feed(p) {
		r.event(e, err)
	}
}

func (r *ReplyReader) event(e sse.Event, err error) {
	switch {
	case r.err != nil:
	case err != nil:
		r.err = err
	case e.Open && !json.Valid(e.Data) && !r.api.Ends(e.Type, e.Data):
		// The stream was cut off within the event.
	case e.HasData:
		r.ended = r.ended || r.api.Ends(e.Type, e.Data)
		r.err = r.stream.Feed(e.Type, e.Data)
		if r.notify == nil || r.err != nil {
			return
		}
		if d, ok := r.api.Delta(e.Type, e.Data); ok {
			r.notify(d)
		}
	}
}

// Stream reports whether the reply is a stream.
func (r *ReplyReader) Stream() bool { return r.stream != nil }

// Ended reports whether the last event of a stream has arrived. Bytes that say
// nothing may follow.
func (r *ReplyReader) Ended() bool { return r.ended }

// Reply returns the reply as far as it arrived, never nil. Call it once, after
// the last Write. cut is the error that cut the body off, nil or io.EOF if it came
// to its end; a reply that was cut off is not Complete, which is not an error. A body
// that holds all of a JSON object counts as whole: some callers close it without
// reading on to its end. The error says why the reply is not all that arrived: it
// is too large, or not in the API's format.
func (r *ReplyReader) Reply(cut error) (*protocol.Reply, error) {
	if r.stream == nil && r.err == nil && r.status < 400 && beginsAsStream(r.body.Bytes()) {
		r.stream = r.api.NewAssembler() // under another content type
		r.feed(r.body.Bytes())
	}
	reply := &protocol.Reply{Format: r.api.Format()}
	switch {
	case r.stream != nil:
		for e, err := range r.events.Close() {
			r.event(e, err)
		}
		if got, _ := r.stream.Reply(); got != nil {
			reply = got
		}
	case r.err != nil:
	case cut != nil && !errors.Is(cut, io.EOF) && !json.Valid(r.body.Bytes()):
	default:
		if got, err := r.api.DecodeReply(r.status, r.body.Bytes()); err != nil {
			r.err = err
		} else {
			reply = got
		}
	}
	if r.err != nil {
		reply.Complete = false
	}
	return reply, r.err
}

// beginsAsStream reports whether a body begins as server-sent events do.
func beginsAsStream(body []byte) bool {
	for _, head := range []string{"data:", "event:", ":", "id:"} {
		if bytes.HasPrefix(body, []byte(head)) {
			return true
		}
	}
	return false
}

// ErrorEvent returns a refusal as an event at the end of a stream, whatever was
// written of the event before. A stream that just ends looks complete to some
// clients.
func ErrorEvent(api API, r *protocol.Refusal) []byte {
	event, data := api.ErrorEvent(r)
	if event == "" {
		return fmt.Appendf(nil, "\n\ndata: %s\n\n", data)
	}
	return fmt.Appendf(nil, "\n\nevent: %s\ndata: %s\n\n", event, data)
}
