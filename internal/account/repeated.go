package account

import (
	"bytes"
	"hash/maphash"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Calls finds earlier calls on a path with the same name and arguments, and
// their results. The zero value is the index of an empty path.
type Calls struct {
	same map[uint64][]*pastCall // by hash of name and arguments
	byID map[string]*pastCall   // the latest call with an id
}

// pastCall is a call that was made once or more often.
type pastCall struct {
	block   *furl.Block
	results []furl.Pos
}

var callSeed = maphash.MakeSeed()

func callHash(b *furl.Block) uint64 {
	var h maphash.Hash
	h.SetSeed(callSeed)
	_, _ = h.WriteString(b.Name)
	_ = h.WriteByte(0)
	_, _ = h.Write(b.Args)
	return h.Sum64()
}

// find returns an earlier call, nil if there is none.
func (x *Calls) find(b *furl.Block) *pastCall {
	for _, c := range x.same[callHash(b)] {
		if c.block.Name == b.Name && bytes.Equal(c.block.Args, b.Args) {
			return c
		}
	}
	return nil
}

// call adds a call.
func (x *Calls) call(b *furl.Block) {
	c := x.find(b)
	if c == nil {
		if x.same == nil {
			x.same, x.byID = make(map[uint64][]*pastCall), make(map[string]*pastCall)
		}
		c = &pastCall{block: b}
		h := callHash(b)
		x.same[h] = append(x.same[h], c)
	}
	x.byID[b.ID] = c
}

// Message adds the next message of the path. Of the calls, it adds only those that
// the index has if known is set.
func (x *Calls) Message(seq furl.Seq, m *furl.Message, known bool) {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case furl.KindCall:
			if !known || x.find(b) != nil {
				x.call(b)
			} else {
				delete(x.byID, b.ID)
			}
		case furl.KindResult:
			if c := x.byID[b.ID]; c != nil {
				c.results = append(c.results, furl.Pos{Msg: seq, Block: i})
			}
		}
	}
}

// repeats reports whether a call repeats an earlier one whose results are all
// hidden. The newest results are the most likely to be shown.
func (x *Calls) repeats(st *furl.State, call *furl.Block) bool {
	c := x.find(call)
	if c == nil {
		return false
	}
	for i := len(c.results) - 1; i >= 0; i-- {
		if st.ShownBy(c.results[i]) == 0 {
			return false
		}
	}
	return len(c.results) > 0
}

// Repeated counts the calls of a message that repeat an earlier call whose results
// are all hidden.
func (x *Calls) Repeated(st *furl.State, m *furl.Message) (n int) {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindCall && x.repeats(st, b) {
			n++
		}
	}
	return n
}

// RepeatedCalls counts the calls of a reply that repeat an earlier call of the path
// whose results are all hidden.
func RepeatedCalls(st *furl.State, reply *protocol.Reply) (n int) {
	var x Calls
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindCall {
				x.call(&m.Blocks[i])
			}
		}
	}
	if len(x.same) == 0 {
		return 0
	}
	clear(x.byID)
	for i := range st.Len() {
		seq, m := st.Message(i)
		x.Message(seq, m, true)
	}
	for _, m := range reply.Messages {
		n += x.Repeated(st, m)
	}
	return n
}
