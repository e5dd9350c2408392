package rebuild

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// ErrNotRecorded means that the bodies of a request were not recorded.
var ErrNotRecorded = errors.New("the body of this request was not recorded")

// ErrDiffers means that a rebuilt body is not the one that was recorded.
var ErrDiffers = errors.New("the rebuilt body differs from the recorded one")

// Contents reads the content of a session with a digest.
type Contents func(furl.Digest) ([]byte, error)

// Body rebuilds the body of the request of an exchange: as furl sent it, or as
// the client did.
func Body(log Records, at furl.Seq, sent bool, contents Contents) ([]byte, error) {
	body, _, err := bodyOf(log, at, sent, contents)
	return body, err
}

// SentBody rebuilds the body that furl sent, with the origin of each element of its
// message list: the message of the log that the element is, or is a changed form of,
// 0 if there is none.
func SentBody(log Records, at furl.Seq, contents Contents) (body []byte, origins []furl.Seq, err error) {
	return bodyOf(log, at, true, contents)
}

func bodyOf(log Records, at furl.Seq, sent bool, contents Contents) ([]byte, []furl.Seq, error) {
	b := &builder{log: log, contents: contents}
	if err := b.walk(at); err != nil {
		return nil, nil, err
	}
	var values [3][]byte
	for i, name := range []string{"frame", "instructions", "tools"} {
		var err error
		if values[i], err = b.content(b.parts[i], name); err != nil {
			return nil, nil, err
		}
	}
	s, l := b.script, &b.received
	if sent && b.sentScript != nil {
		s, l = b.sentScript, b.sent
		if err := b.patch(&values); err != nil {
			return nil, nil, err
		}
	}
	size := len(values[0]) + len(values[1]) + len(values[2])
	for _, e := range l.elements {
		size += len(e)
	}
	if size > maxMemory {
		return nil, nil, errScript
	}
	body, err := join(values[0], values[1], values[2], l)
	if err == nil && sumOf(body, nil) != s.sum {
		err = ErrDiffers
	}
	return body, l.origins, err
}

// Load returns the lists of an exchange, on which those of a next one can
// build.
func Load(log Records, at furl.Seq, contents Contents) (*Lists, error) {
	b := &builder{log: log, contents: contents}
	if err := b.walk(at); err != nil {
		return nil, err
	}
	lists := &Lists{At: at, received: b.received.known(), parts: b.parts, patches: b.patches}
	if b.sent != nil {
		lists.sent = b.sent.known()
	}
	return lists, nil
}

// References returns the digests of the contents that the request of an
// exchange refers to. Those of a script that cannot be read are missing.
func References(p *furl.RequestParts, contents Contents) (digests []furl.Digest) {
	for _, d := range []furl.Digest{p.Frame, p.System, p.Tools} {
		if !d.IsZero() {
			digests = append(digests, d)
		}
	}
	b := &builder{contents: contents}
	for i, text := range []string{p.Received, p.Sent} {
		if text == "" {
			continue
		}
		if text[0] == elsewhere && len(text) == 1+len(furl.Digest{}) {
			digests = append(digests, furl.Digest([]byte(text[1:])))
		}
		s, err := b.parse(text, i == 1)
		if err != nil {
			continue
		}
		for _, d := range s.patches {
			if !d.IsZero() {
				digests = append(digests, d)
			}
		}
		for _, op := range s.ops {
			if op.kind == opContent {
				digests = append(digests, op.digest)
			}
		}
	}
	return digests
}

// ContentsOf returns the contents that records refer to, each once. Those for
// which read returns storage.ErrNoContent are missing.
func ContentsOf(records []furl.Record, read Contents) (list [][]byte, err error) {
	seen := make(map[furl.Digest]bool)
	for _, r := range records {
		x, ok := r.Body.(*furl.Exchange)
		if !ok || x.Request.Received == "" {
			continue
		}
		for _, d := range References(&x.Request, read) {
			if seen[d] {
				continue
			}
			seen[d] = true
			content, err := read(d)
			if errors.Is(err, storage.ErrNoContent) {
				continue
			}
			if err != nil {
				return nil, err
			}
			list = append(list, content)
		}
	}
	return list, nil
}

// ByDigest reads contents from a list.
func ByDigest(list [][]byte) Contents {
	known := make(map[furl.Digest][]byte, len(list))
	for _, c := range list {
		known[furl.DigestOf(c)] = c
	}
	return func(d furl.Digest) ([]byte, error) {
		if c, ok := known[d]; ok {
			return c, nil
		}
		return nil, storage.ErrNoContent
	}
}

// requestOf returns the parts of an exchange's request, nil if they were not
// recorded.
func requestOf(log Records, at furl.Seq) *furl.RequestParts {
	if at == 0 || at > furl.Seq(len(log)) {
		return nil
	}
	if x, ok := log[at-1].Body.(*furl.Exchange); ok && x.Request.Received != "" {
		return &x.Request
	}
	return nil
}

// list is a message list.
type list struct {
	elements [][]byte
	origins  []furl.Seq
	gaps     map[int][]byte
}

func (l *list) known() *known {
	k := &known{}
	for i, e := range l.elements {
		k.add(e, l.origins[i])
	}
	return k
}

func (l *list) clone() *list {
	return &list{elements: slices.Clone(l.elements), origins: slices.Clone(l.origins)}
}

// builder rebuilds the lists of one exchange after the other.
type builder struct {
	log                Records
	contents           Contents
	received           list
	sent               *list   // nil: as received
	script, sentScript *script // sentScript is nil if furl sent the client's body
	parts, patches     parts
	used               int // bytes of memory for patched elements
}

// Bounds for scripts that Describe has not written.
const (
	maxMemory   = 1 << 30 // bytes of patched elements, and of a body
	maxElements = 1 << 20 // of a list
)

// content reads a content, nil for a zero digest.
func (b *builder) content(d furl.Digest, what string) ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	content, err := b.contents(d)
	if err != nil {
		return nil, fmt.Errorf("read the %s of the request (contents above 4 MB are not stored): %w", what, err)
	}
	return content, nil
}

// walk rebuilds the lists of the exchanges that the one at builds on, and then
// its own.
func (b *builder) walk(at furl.Seq) error {
	type step struct {
		at       furl.Seq
		received *script
	}
	var steps []step
	for at != 0 {
		p := requestOf(b.log, at)
		if p == nil {
			return fmt.Errorf("record %d: %w", at, ErrNotRecorded)
		}
		s, err := b.parse(p.Received, false)
		if err == nil && s.base >= at && s.base != 0 {
			err = errScript
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", at, err)
		}
		steps = append(steps, step{at, s})
		if s.base == 0 {
			break
		}
		at -= s.base
	}
	for _, s := range slices.Backward(steps) {
		if err := b.step(s.at, s.received); err != nil {
			return fmt.Errorf("record %d: %w", s.at, err)
		}
	}
	return nil
}

// step rebuilds the lists of an exchange of those of the one that it builds on.
func (b *builder) step(at furl.Seq, received *script) error {
	p := requestOf(b.log, at)
	b.script, b.sentScript = received, nil
	for i, digest := range (parts{p.Frame, p.System, p.Tools}) {
		if received.flags&(1<<i) == 0 {
			b.parts[i] = digest
		}
	}
	var was *list
	if p.Sent != "" {
		var err error
		if b.sentScript, err = b.parse(p.Sent, true); err != nil {
			return err
		}
		if was = b.sent; was == nil && b.sentScript.copies > 0 {
			was = b.received.clone() // the next line changes it
		}
	}
	if err := b.apply(received, at, &b.received, nil); err != nil {
		return err
	}
	if p.Sent == "" {
		b.sent, b.patches = nil, parts{}
		return nil
	}
	for i, digest := range b.sentScript.patches {
		if b.sentScript.flags&(flagSame<<i) == 0 {
			b.patches[i] = digest
		}
	}
	if was == nil {
		was = &list{}
	}
	b.sent = was
	return b.apply(b.sentScript, at, b.sent, &b.received)
}

// apply changes a list by a script.
func (b *builder) apply(s *script, at furl.Seq, l *list, received *list) error {
	was := *l
	*l = list{gaps: make(map[int][]byte)}
	ops := s.ops
	if s.copies == 1 && len(ops) > 0 && ops[0].kind == opCopy && ops[0].from == 0 && ops[0].count <= len(was.elements) {
		// As nearly all: the memory of the list is used again.
		l.elements, l.origins = was.elements[:ops[0].count], was.origins[:ops[0].count]
		ops = ops[1:]
	}
	for i := range ops {
		if err := b.op(&ops[i], at, l, &was, received); err != nil {
			return err
		}
		if len(l.elements) > maxElements {
			return errScript
		}
	}
	return nil
}

func (b *builder) op(op *operation, at furl.Seq, l, was, received *list) error {
	switch op.kind {
	case opCopy, opReceived:
		from := was
		if op.kind == opReceived {
			from = received
		}
		if from == nil || op.from > len(from.elements) || op.count > len(from.elements)-op.from {
			return errScript
		}
		l.elements = append(l.elements, from.elements[op.from:op.from+op.count]...)
		l.origins = append(l.origins, from.origins[op.from:op.from+op.count]...)
	case opLog:
		for i := range op.count {
			if op.from > int(at) || i >= op.from {
				return errScript
			}
			seq := at - furl.Seq(op.from) + furl.Seq(i)
			raw := b.log.message(seq)
			if raw == nil {
				return errScript
			}
			l.elements, l.origins = append(l.elements, raw), append(l.origins, seq)
		}
	case opPatch, opShown:
		from, origin := b.source(op, at, was, received)
		if op.kind == opShown {
			var ok bool
			if from, ok = b.withShown(op, at, from); !ok {
				return errScript
			}
		}
		element, ok := b.patched(from, op.text)
		if from == nil || !ok {
			return errScript
		}
		l.elements, l.origins = append(l.elements, element), append(l.origins, origin)
	case opText:
		l.elements, l.origins = append(l.elements, op.text), append(l.origins, 0)
	case opContent:
		content, err := b.content(op.digest, "message")
		if err != nil {
			return err
		}
		l.elements, l.origins = append(l.elements, content), append(l.origins, 0)
	case opGap:
		l.gaps[len(l.elements)] = op.text
	}
	return nil
}

// source is what a patch is of.
func (b *builder) source(op *operation, at furl.Seq, was, received *list) ([]byte, furl.Seq) {
	from := was
	switch op.source {
	case opLog:
		if op.from > int(at) {
			return nil, 0
		}
		seq := at - furl.Seq(op.from)
		return b.log.message(seq), seq
	case opReceived:
		from = received
	}
	if from == nil || op.from >= len(from.elements) {
		return nil, 0
	}
	return from.elements[op.from], from.origins[op.from]
}

// withShown returns what a reduction shows for a message, and then a source.
func (b *builder) withShown(op *operation, at furl.Seq, from []byte) ([]byte, bool) {
	if op.reduction > int(at) || op.message > int(at) || (op.message == 0) != (op.source == 0) {
		return nil, false
	}
	message := furl.Seq(0)
	if op.message != 0 {
		message = at - furl.Seq(op.message)
	}
	texts := b.log.appendShown(nil, at-furl.Seq(op.reduction), message)
	b.used += len(texts) + len(from)
	return append(texts, from...), len(texts) > 0 && b.used <= maxMemory
}

// patched applies a patch, within what the builder may use of memory.
func (b *builder) patched(from, patch []byte) ([]byte, bool) {
	out, ok := patched(from, patch, maxMemory-b.used)
	b.used += len(out)
	return out, ok
}

// patch changes the parts of the client's body to those that furl sent.
func (b *builder) patch(values *[3][]byte) error {
	for i, d := range b.patches {
		if d.IsZero() {
			continue
		}
		p, err := b.content(d, "patch")
		if err != nil {
			return err
		}
		part, ok := b.patched(values[i], p)
		if !ok {
			return errScript
		}
		values[i] = part
	}
	return nil
}

// script is a parsed script.
type script struct {
	sum     uint32
	base    furl.Seq // distance to the exchange that it builds on
	flags   byte
	patches parts // of a sent body
	ops     []operation
	copies  int // operations of opCopy
}

type operation struct {
	kind, source       byte
	from, count        int
	reduction, message int // distances
	text               []byte
	digest             furl.Digest
}

// parse reads a script, which may be a content.
func (b *builder) parse(text string, sent bool) (*script, error) {
	if text == "" {
		return nil, errScript
	}
	in := []byte(text[1:])
	switch {
	case text[0] == elsewhere && len(in) == len(furl.Digest{}):
		var err error
		if in, err = b.content(furl.Digest(in), "edit script"); err != nil {
			return nil, err
		}
	case text[0] != inline:
		return nil, errScript
	}
	r := reader{in: in}
	s := &script{}
	if sum := r.bytes(4); sum != nil {
		s.sum = binary.LittleEndian.Uint32(sum)
	}
	s.base = furl.Seq(r.number())
	s.flags = r.byte()
	for i := range s.patches {
		if sent && s.flags&(1<<i) != 0 {
			s.patches[i] = r.digest()
		}
	}
	for r.left() > 0 {
		s.operation(&r)
	}
	if r.failed {
		return nil, errScript
	}
	return s, nil
}

func (s *script) operation(r *reader) {
	op := operation{kind: r.byte()}
	switch op.kind {
	case opCopy, opReceived, opLog:
		op.from, op.count = r.number(), r.number()
	case opShown:
		op.reduction, op.message = r.number(), r.number()
		fallthrough
	case opPatch:
		op.source, op.from = r.byte(), r.number()
		op.text = r.bytes(r.number())
	case opText, opGap:
		op.text = r.bytes(r.number())
	case opContent:
		op.digest = r.digest()
	default:
		r.fail()
	}
	if op.kind == opCopy || op.source == opCopy {
		s.copies++
	}
	s.ops = append(s.ops, op)
}
