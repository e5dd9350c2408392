package furl

// View is what the model sees: a pure function of a State. Its slices are
// flat so that a view costs a few allocations however long it is.
type View struct {
	// Messages are the shown messages in order, marks among them.
	Messages []Shown
	// Units are the same blocks grouped into what may be hidden together.
	Units []Unit
	// Tokens is the counted size of all shown blocks, not calibrated.
	Tokens int
	// Bytes approximates the wire size, Images counts images shown.
	Bytes, Images int

	blocks []ShownBlock
	state  *State
}

// Shown is one message as the model sees it.
type Shown struct {
	Seq Seq // the message's record; 0 for a mark
	// Index is the position of the message on the path, counting messages
	// only; -1 for a mark.
	Index int
	// By is the reduction that shows this mark; 0 for a recorded message.
	By  Seq
	Msg *Message // as recorded, or the mark's own message
	// Blocks are those shown, in order. Blocks that a reduction hides are
	// not among them.
	Blocks []ShownBlock
}

// ShownBlock is one block as the model sees it.
type ShownBlock struct {
	Pos   Pos    // zero in a mark
	Block *Block // as recorded
	// By is the reduction whose text is shown instead, 0 if as recorded.
	By     Seq
	Text   string // what is shown, if By is set
	Tokens int    // size of what is shown
	Hold   Hold   // HoldNone, Keep or Pin
}

// AsRecorded reports whether the whole message is shown as it was recorded.
func (s *Shown) AsRecorded() bool {
	if len(s.Blocks) != len(s.Msg.Blocks) {
		return false
	}
	for i := range s.Blocks {
		if s.Blocks[i].By != 0 {
			return false
		}
	}
	return true
}
