package gateway

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
)

// reader understands an answer while it is relayed.
type reader struct {
	codec  codec
	status int
	events *sse.Scanner // nil: the answer is one body
	asm    furl.Assembler
	body   []byte
	err    error
}

// maxReply bounds the answer that is kept to be understood, in bytes.
const maxReply = 64 << 20

func newReader(c codec, status int, events bool) *reader {
	rd := &reader{codec: c, status: status}
	if events {
		rd.events, rd.asm = new(sse.Scanner), c.NewAssembler()
	}
	return rd
}

// Chunk takes the next bytes.
func (rd *reader) Chunk(p []byte) {
	switch {
	case rd.err != nil:
	case rd.events == nil:
		if len(rd.body)+len(p) > maxReply {
			rd.body, rd.err = nil, errTooLong
			return
		}
		rd.body = append(rd.body, p...)
	default:
		rd.feed(p)
	}
}

func (rd *reader) feed(p []byte) {
	for ev, err := range rd.events.Feed(p) {
		if err == nil {
			err = rd.asm.Feed(ev.Type, ev.Data)
		}
		if err != nil {
			rd.err = err
			return
		}
	}
}

// End takes note that the answer is over.
func (rd *reader) End(err error) {
	if rd.err == nil && rd.events != nil && err == nil {
		for ev, e := range rd.events.Close() {
			if e == nil {
				e = rd.asm.Feed(ev.Type, ev.Data)
			}
			if e != nil {
				rd.err = e
				return
			}
		}
	}
}

// reply is what was answered, as far as it could be understood.
func (rd *reader) reply() (*furl.Reply, error) {
	if rd.events == nil {
		if rd.err != nil {
			return nil, rd.err
		}
		return rd.codec.DecodeReply(rd.status, rd.body)
	}
	reply, err := rd.asm.Reply()
	if rd.err != nil {
		err = rd.err
	}
	return reply, err
}
