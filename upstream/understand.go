package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
)

// ErrEncoded is wrapped by the error of an answer in an encoding that furl
// does not read.
var ErrEncoded = errors.New("the answer is encoded")

// Understand returns an Observer that makes a Reply of an answer, streamed or
// not, while it is relayed. done is called once, when the answer has ended,
// with what has been understood; the Reply is never nil. The error is the
// reason for which it is not all that came: the answer is not of the format,
// is encoded, is larger than Options.MaxBody, or went by too fast (ErrLost).
// An answer that was cut off is no error; its Reply is not Complete.
func Understand(c furl.ReplyCodec, resp *Response, done func(*furl.Reply, error)) Observer {
	u := &understanding{codec: c, status: resp.Status, most: resp.client.opts.MaxBody, done: done}
	if resp.Encoding != "" {
		u.err = fmt.Errorf("%w: %s", ErrEncoded, Text(errors.New(resp.Encoding)))
	}
	if resp.Status < 400 && resp.Events() {
		u.stream()
	}
	return u
}

// understanding is fed with what was relayed.
type understanding struct {
	codec     furl.ReplyCodec
	status    int
	most      int64
	done      func(*furl.Reply, error)
	scanner   *sse.Scanner // of a stream
	assembler furl.Assembler
	streamed  int64        // bytes of it so far
	body      bytes.Buffer // of anything else
	err       error        // nothing more is understood
}

func (u *understanding) stream() {
	u.scanner = new(sse.Scanner)
	u.assembler = u.codec.NewAssembler()
}

// Chunk implements Observer.
func (u *understanding) Chunk(p []byte) {
	switch {
	case u.err != nil:
	case u.scanner != nil && u.streamed+int64(len(p)) > u.most:
		u.err = fmt.Errorf("%w: over %d bytes", ErrTooLarge, u.most)
	case u.scanner != nil:
		u.streamed += int64(len(p))
		u.events(p)
	case int64(u.body.Len()+len(p)) > u.most:
		u.err = fmt.Errorf("%w: over %d bytes", ErrTooLarge, u.most)
		u.body = bytes.Buffer{}
	default:
		u.body.Write(p)
	}
}

func (u *understanding) events(p []byte) {
	for e, err := range u.scanner.Feed(p) {
		u.event(e, err)
	}
}

func (u *understanding) event(e sse.Event, err error) {
	switch {
	case u.err != nil:
		return
	case err != nil:
		u.err = err
	case e.Open && !json.Valid(e.Data) && string(e.Data) != "[DONE]":
		// Cut off in the midst of it.
	case e.HasData:
		u.err = u.assembler.Feed(e.Type, e.Data)
	}
}

// End implements Observer.
func (u *understanding) End(err error) {
	if u.scanner == nil && u.err == nil && isStream(u.body.Bytes()) {
		u.stream() // under another name
		u.events(u.body.Bytes())
	}
	reply := new(furl.Reply)
	if c, ok := u.codec.(furl.Codec); ok {
		reply.Format = c.Format()
	}
	switch {
	case u.scanner != nil:
		for e, err := range u.scanner.Close() {
			u.event(e, err)
		}
		reply, _ = u.assembler.Reply()
	case u.err == nil && err == nil:
		if r, err := u.codec.DecodeReply(u.status, u.body.Bytes()); err != nil {
			u.err = err
		} else {
			reply = r
		}
	}
	if u.err == nil && errors.Is(err, ErrLost) {
		u.err = ErrLost
	}
	if u.err != nil {
		reply.Complete = false
	}
	u.done(reply, u.err)
}

// isStream reports whether a body begins as a stream of events does.
func isStream(body []byte) bool {
	for _, head := range []string{"data:", "event:", ":", "id:"} {
		if bytes.HasPrefix(body, []byte(head)) {
			return true
		}
	}
	return false
}
