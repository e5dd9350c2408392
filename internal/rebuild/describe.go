package rebuild

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/storage"
)

const (
	// inlineTo is the largest script that is in its record, in bytes. A larger
	// one is a content, so that it is not in memory with the session.
	inlineTo = 1 << 10
	// contentFrom is the size from which a new element is a content: the next
	// request may have it too.
	contentFrom = 512
	// maxSources is how many messages, and reductions, are tried as the source of
	// a patch.
	maxSources = 4
)

// Lists are the message lists of an exchange, in the form in which those of the
// next one are compared with them.
type Lists struct {
	At             furl.Seq // the record of the exchange
	received, sent *known
	parts, patches parts // contents with the client's parts, and with how furl changed them
}

// parts are digests of a frame, of instructions and of tools, or of patches of
// them.
type parts [3]furl.Digest

// known is a message list of which there are no bytes.
type known struct {
	sums    []uint64   // of the elements
	origins []furl.Seq // the message of the log that an element is, or is a patch of; 0: none
}

func (k *known) add(element []byte, origin furl.Seq) {
	k.sums = append(k.sums, rawjson.Sum(element))
	k.origins = append(k.origins, origin)
}

// last is the message that the last element with a known one comes from.
func (k *known) last() furl.Seq {
	for _, seq := range slices.Backward(k.origins) {
		if seq != 0 {
			return seq
		}
	}
	return 0
}

// places finds elements by their sum.
func (k *known) places() map[uint64]int {
	places := make(map[uint64]int, len(k.sums))
	for i := len(k.sums) - 1; i >= 0; i-- {
		places[k.sums[i]] = i
	}
	return places
}

// Records are those of a session, from the first on.
type Records []furl.Record

// message returns the bytes of a message, nil if it has none.
func (l Records) message(seq furl.Seq) []byte {
	if seq == 0 || seq > furl.Seq(len(l)) {
		return nil
	}
	if m, ok := l[seq-1].Body.(*furl.Message); ok {
		return m.Raw
	}
	return nil
}

// Describe describes the bodies of the request of the exchange that will be the
// record at of the log. Sent is nil if furl sent what it received. base are the
// lists of an earlier exchange of the session, nil for none. The contents are to
// be stored with the record. The lists are for the next call.
func Describe(log Records, at furl.Seq, base *Lists, received, sent *Parts) (p furl.RequestParts, contents [][]byte, lists *Lists) {
	lists = &Lists{At: at}
	d := &describer{log: log, at: at, base: base, lists: lists}
	var was *known
	if base != nil {
		was = base.received
	}
	w := d.start(received)
	d.parts(w, received, &p)
	lists.received = d.list(w, received, was, nil, nil)
	p.Received = d.script(w)
	if sent == nil {
		return p, d.contents, lists
	}
	if base != nil && base.sent != nil {
		was = base.sent
	}
	w = d.start(sent)
	d.patches(w, received, sent)
	lists.sent = d.list(w, sent, was, lists.received, received.Elements)
	p.Sent = d.script(w)
	return p, d.contents, lists
}

type describer struct {
	log      Records
	at       furl.Seq
	base     *Lists
	lists    *Lists // to be filled in
	contents [][]byte
	// Messages since the exchange that is built on, and the newest reductions.
	fresh, reductions []furl.Seq
	sums              map[uint64]furl.Seq
	patcher           patcher
	source            []byte // memory for what a reduction shows, and a message
}

// parts describes the client's frame, instructions and tools.
func (d *describer) parts(w *writer, received *Parts, p *furl.RequestParts) {
	flags := byte(0)
	digests := [...]*furl.Digest{&p.Frame, &p.System, &p.Tools}
	for i, part := range received.all() {
		if part == nil {
			continue
		}
		digest := furl.DigestOf(part)
		d.lists.parts[i] = digest
		if d.base != nil && d.base.parts[i] == digest {
			flags |= 1 << i
			continue
		}
		*digests[i] = d.content(part)
	}
	w.out = append(w.out, flags)
}

// content has bytes stored, unless they are too large, and returns their digest.
func (d *describer) content(b []byte) furl.Digest {
	if len(b) <= storage.MaxContent {
		d.contents = append(d.contents, b)
	}
	return furl.DigestOf(b)
}

// start begins the script of a body.
func (d *describer) start(p *Parts) *writer {
	w := &writer{at: d.at, out: make([]byte, 0, 64)}
	w.out = binary.LittleEndian.AppendUint32(append(w.out, inline), p.sum)
	if d.base == nil {
		w.number(0)
	} else {
		w.number(int(d.at - d.base.At))
	}
	return w
}

// script returns a script as it is in the record.
func (d *describer) script(w *writer) string {
	w.flush()
	if len(w.out) <= inlineTo {
		return string(w.out)
	}
	digest := d.content(w.out[1:])
	return string(append([]byte{elsewhere}, digest[:]...))
}

// patches describes how the frame, the instructions and the tools that furl sent
// differ from the client's.
func (d *describer) patches(w *writer, received, sent *Parts) {
	flags := len(w.out)
	w.out = append(w.out, 0)
	from := received.all()
	for i, part := range sent.all() {
		if bytes.Equal(from[i], part) {
			continue
		}
		change, _ := d.patcher.patch(nil, from[i], part, math.MaxInt)
		digest := furl.DigestOf(change)
		d.lists.patches[i] = digest
		if d.base != nil && d.base.patches[i] == digest {
			w.out[flags] |= flagSame << i
			continue
		}
		w.out[flags] |= 1 << i
		w.digest(d.content(change))
	}
}

// list describes the elements of a list by those of an earlier one, of the
// client's, and of the log.
func (d *describer) list(w *writer, p *Parts, was, received *known, bodies [][]byte) *known {
	l := &lister{d: d, w: w, bodies: bodies, now: &known{sums: p.elementSums(), origins: make([]furl.Seq, 0, len(p.Elements))}}
	l.was.known, l.received.known = was, received
	for i, e := range p.Elements {
		if gap, ok := p.gaps[i]; ok {
			w.gap(gap)
		}
		origin, ok := l.whole(l.now.sums[i], e)
		if !ok {
			origin = l.changed(e)
		}
		l.now.origins = append(l.now.origins, origin)
	}
	return l.now
}

// lister describes one list.
type lister struct {
	d             *describer
	w             *writer
	bodies        [][]byte // elements of received
	was, received cursor
	now           *known
}

// cursor is a place in a list whose elements are probably next.
type cursor struct {
	*known
	at     int
	places map[uint64]int // made after some searches without it
	missed int
}

// maxSearches is how many elements are searched for in a list one after the other. Usually few
// elements are not where they are expected.
const maxSearches = 16

// find returns the index of an element, -1 if the list does not have it.
func (c *cursor) find(sum uint64) int {
	switch {
	case c.known == nil:
		return -1
	case c.at < len(c.sums) && c.sums[c.at] == sum:
		c.at++
		return c.at - 1
	}
	i := -1
	if c.missed++; c.missed <= maxSearches {
		i = slices.Index(c.sums, sum)
	} else {
		if c.places == nil {
			c.places = c.known.places()
		}
		if at, ok := c.places[sum]; ok {
			i = at
		}
	}
	if i >= 0 {
		c.at = i + 1
	}
	return i
}

// next is the message that the element at the cursor comes from, 0 for none.
func (c *cursor) next() furl.Seq {
	if c.known == nil || c.at >= len(c.origins) {
		return 0
	}
	return c.origins[c.at]
}

// whole describes an element that is somewhere as it is.
func (l *lister) whole(sum uint64, element []byte) (origin furl.Seq, ok bool) {
	if i := l.was.find(sum); i >= 0 {
		l.w.run(opCopy, i)
		return l.was.origins[i], true
	}
	if i := l.received.find(sum); i >= 0 {
		l.w.run(opReceived, i)
		return l.received.origins[i], true
	}
	if seq, ok := l.d.messages()[sum]; ok && bytes.Equal(l.d.log.message(seq), element) {
		l.w.run(opLog, int(seq))
		return seq, true
	}
	return 0, false
}

// changed describes an element that is nowhere as it is: by a patch of what is
// probably its source, or by its bytes.
func (l *lister) changed(element []byte) furl.Seq {
	c := candidate{l: l, element: element, size: len(element) / 2}
	replaces := l.was.next()
	if replaces != 0 {
		c.try(l.d.log.message(replaces), replaces, opLog, int(l.d.at-replaces))
	}
	if l.received.known != nil {
		l.received.seek(l.now)
		for i := l.received.at; i < min(len(l.bodies), l.received.at+maxSources); i++ {
			c.try(l.bodies[i], l.received.origins[i], opReceived, i)
		}
		c.tryTexts()
	} else {
		for _, seq := range l.d.unused(l.now) {
			c.try(l.d.log.message(seq), seq, opLog, int(l.d.at-seq))
		}
	}
	l.w.flush()
	switch {
	case c.operation != nil:
		if c.origin != 0 && c.origin == replaces {
			l.was.at++
		}
		l.w.out = append(l.w.out, c.operation...)
		l.w.text(c.patch)
	case len(element) < contentFrom:
		l.w.out = append(l.w.out, opText)
		l.w.text(element)
	default:
		l.w.out = append(l.w.out, opContent)
		l.w.digest(l.d.content(element))
	}
	return c.origin
}

// candidate is the shortest patch so far that makes an element.
type candidate struct {
	l         *lister
	element   []byte
	size      int    // that a patch must be shorter than
	operation []byte // with the source, without the patch; nil: none was found
	patch     []byte
	tried     []byte // memory for the next patch
	origin    furl.Seq
}

// good is the size of a patch, in bytes, that is not worth to be improved.
const good = 2 * block

// try tries a source after what the newest reductions show in its place, and alone.
func (c *candidate) try(from []byte, seq furl.Seq, kind byte, index int) {
	if len(from) == 0 || c.size <= good {
		return
	}
	source := binary.AppendUvarint([]byte{kind}, uint64(index))
	if d := c.l.d; c.l.received.known != nil && seq != 0 {
		for _, red := range slices.Backward(d.reductions) {
			if d.source = d.log.appendShown(d.source[:0], red, seq); len(d.source) == 0 {
				continue
			}
			if d.source = append(d.source, from...); c.patched(d.source, seq) {
				c.operation = append(c.shown(red, int(d.at-seq)), source...)
			}
			if c.size <= good {
				return
			}
		}
	}
	if c.patched(from, seq) {
		c.operation = append([]byte{opPatch}, source...)
	}
}

// tryTexts tries all texts of the newest reductions.
func (c *candidate) tryTexts() {
	d := c.l.d
	for _, red := range d.reductions {
		if c.size <= good {
			return
		}
		d.source = d.log.appendShown(d.source[:0], red, 0)
		if len(d.source) > 0 && c.patched(d.source, 0) {
			c.operation = append(c.shown(red, 0), 0, 0)
		}
	}
}

// shown begins an operation.
func (c *candidate) shown(red furl.Seq, message int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{opShown}, uint64(c.l.d.at-red)), uint64(message))
}

// patched tries a source, and reports whether its patch is the shortest so far.
func (c *candidate) patched(from []byte, origin furl.Seq) bool {
	patch, ok := c.l.d.patcher.patch(c.tried[:0], from, c.element, c.size)
	c.tried = patch
	if !ok {
		return false
	}
	c.tried, c.patch = c.patch, patch
	c.size, c.origin = len(patch), origin
	return true
}

// seek moves the cursor behind the element that comes from the same message as
// the last one of another list.
func (c *cursor) seek(last *known) {
	origin := last.last()
	for i := len(c.origins) - 1; i >= 0 && origin != 0; i-- {
		if c.origins[i] == origin {
			c.at = i + 1
			return
		}
	}
}

// messages finds the messages since the exchange that is built on.
func (d *describer) messages() map[uint64]furl.Seq {
	if d.sums != nil {
		return d.sums
	}
	d.sums = make(map[uint64]furl.Seq)
	from := furl.Seq(0)
	if d.base != nil {
		from = d.base.At
	}
	for seq := from + 1; seq < d.at && seq <= furl.Seq(len(d.log)); seq++ {
		if raw := d.log.message(seq); raw != nil {
			d.fresh = append(d.fresh, seq)
			d.sums[rawjson.Sum(raw)] = seq
		} else if _, ok := d.log[seq-1].Body.(*furl.Reduction); ok {
			d.reductions = append(d.reductions, seq)
		}
	}
	d.reductions = d.reductions[max(0, len(d.reductions)-maxSources):]
	return d.sums
}

// unused gives the messages since the exchange that is built on that are
// probably next in a list.
func (d *describer) unused(now *known) []furl.Seq {
	d.messages()
	last := now.last()
	for i, seq := range d.fresh {
		if seq > last {
			return d.fresh[i:min(len(d.fresh), i+maxSources)]
		}
	}
	return nil
}
