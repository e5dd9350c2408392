package recall

import (
	"context"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// Original is what a handle names, exactly as it was appended.
type Original struct {
	Handle Handle // with its session
	Record furl.Record
	// Message is the whole message; Block the one named, nil for all of it.
	Message *furl.Message
	Block   *furl.Block
	// Text is what can be read, exact: a block's words; a call's arguments as
	// JSON; of a whole message all blocks, an empty line between them.
	Text string
	// Raw is what it was on the wire: the message's or the block's JSON. It is
	// nil where there was none of its own, as of a block in a message whose
	// content is one string.
	Raw []byte
}

// Get returns the exact original that a handle names. If the handle has no
// session, it is key's; one of another session must be of the same tenant.
//
// A session that does not exist is an error wrapping furl.ErrNoSession, a
// message or block that does not exist one wrapping ErrNotFound.
func Get(ctx context.Context, store furl.Store, key furl.SessionKey, h Handle) (*Original, error) {
	if h.Session == "" {
		h.Session = key.Session
	}
	key.Session = h.Session
	if h.Msg == 0 {
		return nil, fmt.Errorf("get %s: %w", h, ErrNotFound)
	}
	r, err := record(ctx, store, key, h.Msg)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", h, err)
	}
	m, ok := r.Body.(*furl.Message)
	switch {
	case !ok:
		return nil, fmt.Errorf("get %s: record %d is no message: %w", h, r.Seq, ErrNotFound)
	case h.Block >= len(m.Blocks):
		return nil, fmt.Errorf("get %s: message %d has %d blocks: %w", h, r.Seq, len(m.Blocks), ErrNotFound)
	}
	o := &Original{Handle: h, Record: r, Message: m, Raw: m.Raw}
	if h.Block < 0 {
		var texts []string
		for i := range m.Blocks {
			if text := exactText(&m.Blocks[i]); text != "" {
				texts = append(texts, text)
			}
		}
		o.Text = strings.Join(texts, "\n\n")
		return o, nil
	}
	o.Block = &m.Blocks[h.Block]
	o.Text, o.Raw = exactText(o.Block), nil
	if b := o.Block; 0 <= b.Start && b.Start < b.End && b.End <= len(m.Raw) {
		o.Raw = m.Raw[b.Start:b.End]
	}
	return o, nil
}

// exactText is what a block says: words, arguments, or both.
func exactText(b *furl.Block) string {
	if b.Text == "" || len(b.Args) == 0 {
		return b.Text + string(b.Args)
	}
	return b.Text + "\n" + string(b.Args)
}

// Range is a piece of a text, in lines or in bytes. The zero value is all of
// it.
type Range struct {
	// FromLine and ToLine are lines, the first is 1, both included; 0: from
	// the first, to the last.
	FromLine, ToLine int
	// From and To are bytes, from 0, the second excluded; To 0: to the end.
	// With lines they count from the first of these.
	From, To int
}

// Cut gives the piece of a text that a range names, and where in the text it
// stands. What a range names beyond the end is not there; a range that begins
// behind the end is an error wrapping ErrNotFound. Bytes are taken as they
// are: the piece may begin or end inside a character.
func (r Range) Cut(text string) (piece string, from, to int, err error) {
	if r.FromLine < 0 || r.ToLine < 0 || r.From < 0 || r.To < 0 || r.ToLine > 0 && r.ToLine < r.FromLine || r.To > 0 && r.To < r.From {
		return "", 0, 0, fmt.Errorf("a range from line %d to %d, byte %d to %d: %w", r.FromLine, r.ToLine, r.From, r.To, ErrNotFound)
	}
	from, to = 0, len(text)
	if r.FromLine > 1 || r.ToLine > 0 {
		var ok bool
		if from, ok = lineStart(text, max(r.FromLine, 1)); !ok {
			return "", 0, 0, fmt.Errorf("line %d of %d: %w", r.FromLine, strings.Count(text, "\n")+1, ErrNotFound)
		}
		if r.ToLine > 0 {
			if end, ok := lineStart(text, r.ToLine+1); ok {
				to = end
			}
		}
	}
	if r.From > to-from {
		return "", 0, 0, fmt.Errorf("byte %d of %d: %w", r.From, to-from, ErrNotFound)
	}
	if r.To > 0 {
		to = from + min(r.To, to-from)
	}
	from += r.From
	return text[from:to], from, to, nil
}

// lineStart is where a line begins, the first being 1.
func lineStart(text string, line int) (at int, ok bool) {
	for ; line > 1; line-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	return at, true
}
