package session

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/wire"
)

// Listener understands a reply whose bytes pass by on their way to the client:
// they go there first and are handed to Write second. It never fails; what it
// cannot understand it leaves. It is for one reply and one goroutine.
type Listener struct {
	codec  furl.ReplyCodec
	status int
	stream furl.Assembler // nil: the reply comes in one piece
	events sse.Scanner
	body   bytes.Buffer
	err    error
	ended  bool
}

// maxReply bounds what is kept of a reply that comes in one piece.
const maxReply = 64 << 20

// Listen gives a Listener for the answer to a request of a format; nil if
// nobody understands it. The status and the content type are those of the
// answer.
func Listen(format furl.Format, status int, contentType string) *Listener {
	codec := wire.For(format)
	if codec == nil {
		return nil
	}
	l := &Listener{codec: codec, status: status}
	if kind, _, _ := strings.Cut(contentType, ";"); strings.EqualFold(strings.TrimSpace(kind), sse.ContentType) {
		l.stream = codec.NewAssembler()
	}
	return l
}

// Write takes the next bytes. The error is always nil.
func (l *Listener) Write(p []byte) (int, error) {
	switch {
	case l.err != nil:
	case l.stream != nil:
		for e, err := range l.events.Feed(p) {
			l.event(e, err)
		}
	case l.body.Len()+len(p) > maxReply:
		l.err = fmt.Errorf("a reply of more than %d bytes", maxReply)
	default:
		l.body.Write(p)
	}
	return len(p), nil
}

func (l *Listener) event(e sse.Event, err error) {
	switch {
	case l.err != nil:
	case err != nil:
		l.err = err
	case e.HasData:
		l.ended = l.ended || ends(e)
		l.err = l.stream.Feed(e.Type, e.Data)
	}
}

// ends reports whether an event is the last that says anything, in any of the
// formats.
func ends(e sse.Event) bool {
	switch e.Type {
	case "message_stop", "response.completed", "response.incomplete", "response.failed", "error":
		return true
	}
	return string(bytes.TrimSpace(e.Data)) == "[DONE]"
}

// Stream reports whether the answer is a stream.
func (l *Listener) Stream() bool { return l.stream != nil }

// Ended reports whether a stream has said that it is over. There may be bytes
// left that say nothing.
func (l *Listener) Ended() bool { return l.ended }

// Reply gives what came, after the last Write: of a stream that was cut off,
// what had come until then.
func (l *Listener) Reply() (*furl.Reply, error) {
	if l.stream == nil {
		if l.err != nil {
			return nil, l.err
		}
		return l.codec.DecodeReply(l.status, l.body.Bytes())
	}
	for e, err := range l.events.Close() {
		l.event(e, err)
	}
	r, err := l.stream.Reply()
	if err == nil {
		err = l.err
	}
	return r, err
}
