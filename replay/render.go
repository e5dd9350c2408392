package replay

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// rendered is one shown message as sent.
type rendered struct {
	id        uint64 // equal for equal bytes
	size      token.Part
	positions int // blocks as a cache lookback counts them
	// messages are decoded from the bytes that are sent.
	messages []furl.Message
}

var seed = maphash.MakeSeed()

// asRecorded renders a message of the recording without changes.
func (s *session) asRecorded(seq furl.Seq, m *furl.Message) error {
	blocks := make([]furl.ShownBlock, len(m.Blocks))
	for i := range m.Blocks {
		blocks[i] = furl.ShownBlock{Pos: furl.Pos{Msg: seq, Block: i}, Block: &m.Blocks[i], Tokens: m.Blocks[i].Tokens}
	}
	var err error
	s.pieces[seq], err = s.encode(&furl.Shown{Seq: seq, Msg: m, Blocks: blocks})
	return err
}

// encode renders a shown message and decodes the result.
func (s *session) encode(sh *furl.Shown) (rendered, error) {
	var out rendered
	raws, err := s.codec.EncodeMessage(*sh)
	if err != nil {
		return out, err
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, raw := range raws {
		h.Write(binary.AppendUvarint(nil, uint64(len(raw))))
		h.Write(raw)
		m := sh.Msg
		if m.Raw == nil || len(raws) != 1 || &raw[0] != &m.Raw[0] {
			if m, err = s.codec.DecodeMessage(raw); err != nil {
				return out, err
			}
		}
		out.messages = append(out.messages, *m)
		out.positions += positions(m)
	}
	out.id = h.Sum64()
	out.size = token.PartOfShown(sh)
	return out, nil
}

// positions counts blocks as a cache lookback does: consecutive calls, or
// consecutive results, are one (Anthropic, prompt caching).
func positions(m *furl.Message) int {
	n := 0
	var last furl.Kind
	for i := range m.Blocks {
		k := m.Blocks[i].Kind
		if i == 0 || k != last || k != furl.KindCall && k != furl.KindResult {
			n++
		}
		last = k
	}
	return max(1, n)
}
