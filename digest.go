package furl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"sync"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:8]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// DigestOf is the digest of some bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// Seal computes the message's Digest over its canonical blocks: role, text,
// ids, tool names, arguments with sorted keys, and the bytes of media and
// opaque blocks. It leaves out what clients change without changing the
// meaning: cache marks, thinking, key order, string against block form, and the
// content of results, which clients may clear.
func (m *Message) Seal() { m.Digest = m.extend(Digest{}, true) }

// Extend returns the chain of digests continued by the message. Chaining goes
// block by block, so grouping blocks into other messages of the same role does
// not change it. Blocks with Own set are left out. Leading instructions leave
// the chain zero, because clients rewrite them. A compaction begins a new chain, because
// clients may leave out what it replaced. Record.Chain differs from it after
// a call that furl answered in Chat Completions, where the client has the text
// before and after the call as one.
func (m *Message) Extend(chain Digest) Digest {
	if chain.IsZero() && (m.Role == RoleSystem || m.Role == RoleDeveloper) && !m.HasCompaction() {
		return chain
	}
	return m.extend(chain, false)
}

func (m *Message) extend(chain Digest, own bool) Digest {
	d := newDigester()
	defer d.done()
	for i := 0; i < len(m.Blocks); i++ {
		b := &m.Blocks[i]
		if b.Kind == KindThinking || b.Own && !own {
			continue
		}
		if b.Kind == KindText && m.inPieces() {
			if joined, last := m.joinedText(i, own); last > i {
				b, i = &joined, last
			}
		}
		if b.IsCompaction() {
			chain = Digest{}
		}
		d.digest(chain)
		b.canonical(d, m)
		chain = d.sum()
	}
	return chain
}

func (b *Block) canonical(d *digester, m *Message) {
	role := m.Role
	switch {
	case b.Kind == KindResult:
		role = RoleTool // Anthropic carries results in user messages
	case b.Kind == KindOpaque && role == "":
		role = RoleAssistant // an item without a role, which a reply may contain
	}
	d.field(string(role))
	d.field(b.Kind.String())
	switch b.Kind {
	case KindText:
		d.field(b.Text)
	case KindCall:
		d.field(anchorOf(b, m))
		d.field(b.Name)
		d.bytes(d.json.canonical(b.Args))
	case KindResult:
		d.field(anchorOf(b, m))
	case KindImage, KindDocument:
		for i := range b.Media {
			d.digest(b.Media[i].Digest)
		}
	default:
		d.field(b.Name)
		if b.End > b.Start && b.End <= len(m.Raw) {
			d.bytes(d.json.canonical(m.Raw[b.Start:b.End]))
		} else {
			d.field(b.Text)
		}
	}
}

// digester hashes fields one after the other. Strings pass through its own
// buffer: handed to a hash as bytes, each would be copied to the heap.
type digester struct {
	hash hash.Hash
	buf  [512]byte
	n    int // bytes of buf that wait to be hashed
	json canonicalizer
}

// digesters are used again: there is one for each message of a request.
var digesters = sync.Pool{New: func() any { return &digester{hash: sha256.New()} }}

func newDigester() *digester { return digesters.Get().(*digester) }

// maxKept is the size up to which a digester's buffers are kept for the next.
const maxKept = 1 << 16

// done gives the digester back.
func (d *digester) done() {
	d.json.src = nil
	if cap(d.json.out) > maxKept || cap(d.json.unsorted) > maxKept {
		d.json = canonicalizer{}
	}
	digesters.Put(d)
}

// field adds a length and a string, so that fields cannot run together.
func (d *digester) field(s string) {
	d.length(len(s))
	for len(s) > 0 {
		if d.n == len(d.buf) {
			d.flush()
		}
		n := copy(d.buf[d.n:], s)
		d.n += n
		s = s[n:]
	}
}

// bytes is field for bytes.
func (d *digester) bytes(b []byte) {
	d.length(len(b))
	d.flush()
	d.hash.Write(b)
}

// digest adds a digest, which needs no length.
func (d *digester) digest(x Digest) {
	d.room(len(x))
	d.n += copy(d.buf[d.n:], x[:])
}

func (d *digester) length(n int) {
	d.room(8)
	binary.LittleEndian.PutUint64(d.buf[d.n:], uint64(n))
	d.n += 8
}

// room makes room in the buffer.
func (d *digester) room(n int) {
	if d.n+n > len(d.buf) {
		d.flush()
	}
}

func (d *digester) flush() {
	d.hash.Write(d.buf[:d.n])
	d.n = 0
}

// sum is the digest of what was added; what follows begins anew.
func (d *digester) sum() Digest {
	d.flush()
	d.hash.Sum(d.buf[:0])
	d.hash.Reset()
	return Digest(d.buf[:sha256.Size])
}

// exact adds everything of the block that a provider renders, cache marks
// aside, with text in place of the recorded one.
func (b *Block) exact(d *digester, text string, raw []byte) {
	d.field(b.Kind.String())
	d.field(b.ID)
	d.field(b.Name)
	d.field(text)
	d.bytes(b.Args)
	if b.Error {
		d.field("error")
	}
	for i := range b.Media {
		d.digest(b.Media[i].Digest)
	}
	if b.Kind == KindOpaque && b.End > b.Start && b.End <= len(raw) {
		d.bytes(raw[b.Start:b.End])
	}
}

// Furl answers calls of its own recall tools itself. Such a call and its
// result are on the path like any other, so that every view, stage and search
// knows them, but the client never saw them: their blocks are marked Own, and
// the chain of digests, by which a client's history finds its place, leaves
// them out. What the model says before its call and after the answer is one
// message to the client.

// HasOwn reports whether a block of the message has Own set, so that the
// client's message differs.
func (m *Message) HasOwn() bool {
	for i := range m.Blocks {
		if m.Blocks[i].Own {
			return true
		}
	}
	return false
}

// BetweenWords separates the text before and after a call that furl answered,
// in clients that have both as one text.
const BetweenWords = "\n\n"

// extend returns the chain of digests of the path continued by a message. It is
// Message.Extend, except that pieces of a reply are joined (ChainAt), and in Chat Completions the text before and after a
// call that furl answered is one text.
func (s *State) extend(m *Message) Digest {
	n := len(s.msgs)
	if m.inPieces() {
		at := func(i int) *Message {
			if i == n {
				return m
			}
			return s.msgs[i]
		}
		return extendPieces(n, at, s.Chain)
	}
	first := m.firstWords()
	if first < 0 || m.Format != FormatChat || n == 0 || !s.msgs[n-1].HasOwn() {
		return m.Extend(s.Chain(n))
	}
	text, at := m.Blocks[first].Text, n
	for i := n - 1; i >= 0 && s.msgs[i].answered(); i-- {
		if w := s.msgs[i].firstWords(); w >= 0 {
			before := s.msgs[i].Blocks[w].Text
			if before != "" && text != "" {
				before += BetweenWords
			}
			text, at = before+text, i
		}
	}
	joined := *m
	joined.Blocks = slices.Clone(m.Blocks)
	joined.Blocks[first].Text = text
	return joined.Extend(s.Chain(at))
}

// answered reports whether all calls of a message are furl's own, or it is the
// answer to such calls: what follows goes on with the same message.
func (m *Message) answered() bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == KindCall && !b.Own {
			return false
		}
	}
	return m.HasOwn()
}

// firstWords is the text that an assistant's message begins with, thinking
// aside; -1 if it begins with none.
func (m *Message) firstWords() int {
	if m.Role != RoleAssistant {
		return -1
	}
	i := slices.IndexFunc(m.Blocks, func(b Block) bool { return b.Kind != KindThinking })
	if i < 0 || m.Blocks[i].Kind != KindText {
		return -1
	}
	return i
}

// canonicalizer writes JSON in one way. It can be used again; what it gave is
// then overwritten.
type canonicalizer struct {
	src      []byte
	at       int
	out      []byte
	fields   []field // of the objects that are being written
	unsorted []byte
}

// canonical gives v without optional space, its object keys sorted, its
// strings escaped in one way and cache marks dropped. Numbers keep their text;
// duplicate keys keep their order. What is not JSON, or nests too deep, is
// returned as it is.
func (c *canonicalizer) canonical(v []byte) []byte {
	c.src, c.at, c.out, c.fields = v, 0, c.out[:0], c.fields[:0]
	if !c.value(0) {
		return v
	}
	c.space()
	if c.at != len(v) {
		return v
	}
	return c.out
}

// maxCanonicalDepth bounds the recursion on hostile input; deeper values
// digest by their bytes.
const maxCanonicalDepth = 512

func (c *canonicalizer) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// next is the next byte that is not space, 0 at the end.
func (c *canonicalizer) next() byte {
	c.space()
	if c.at == len(c.src) {
		return 0
	}
	return c.src[c.at]
}

func (c *canonicalizer) value(depth int) bool {
	if depth > maxCanonicalDepth {
		return false
	}
	switch c.next() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		return c.str()
	}
	return c.literal()
}

func (c *canonicalizer) array(depth int) bool {
	c.out = append(c.out, '[')
	c.at++
	for n := 0; ; n++ {
		if n == 0 && c.next() == ']' {
			break
		}
		if !c.value(depth + 1) {
			return false
		}
		end := c.next()
		if end == ']' {
			break
		}
		if end != ',' {
			return false
		}
		c.out = append(c.out, ',')
		c.at++
	}
	c.at++
	c.out = append(c.out, ']')
	return true
}

// field is one member of an object in the output, key and all.
type field struct{ start, key, end int }

func (c *canonicalizer) object(depth int) bool {
	c.out = append(c.out, '{')
	c.at++
	first, start := len(c.fields), len(c.out)
	for n := 0; ; n++ {
		if n == 0 && c.next() == '}' {
			break
		}
		f := field{start: len(c.out)}
		if c.next() != '"' || !c.str() || c.next() != ':' {
			return false
		}
		f.key = len(c.out)
		c.out = append(c.out, ':')
		c.at++
		if !c.value(depth + 1) {
			return false
		}
		f.end = len(c.out)
		if string(c.out[f.start:f.key]) == `"cache_control"` {
			c.out = c.out[:f.start]
		} else {
			c.fields = append(c.fields, f)
		}
		end := c.next()
		if end == '}' {
			break
		}
		if end != ',' {
			return false
		}
		c.at++
	}
	c.at++
	c.sort(start, c.fields[first:])
	c.fields = c.fields[:first]
	c.out = append(c.out, '}')
	return true
}

// sort puts the fields written since start into order, with commas.
func (c *canonicalizer) sort(start int, fields []field) {
	c.unsorted = append(c.unsorted[:0], c.out[start:]...)
	written := c.unsorted
	slices.SortStableFunc(fields, func(a, b field) int {
		return bytes.Compare(written[a.start-start:a.key-start], written[b.start-start:b.key-start])
	})
	c.out = c.out[:start]
	for i, f := range fields {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[f.start-start:f.end-start]...)
	}
}

// str copies a string; one with escapes is decoded and escaped again.
func (c *canonicalizer) str() bool {
	from := c.at
	escaped := false
	for c.at++; c.at < len(c.src); c.at++ {
		switch c.src[c.at] {
		case '\\':
			escaped = true
			c.at++
		case '"':
			c.at++
			if !escaped {
				c.out = append(c.out, c.src[from:c.at]...)
				return true
			}
			var s string
			if json.Unmarshal(c.src[from:c.at], &s) != nil {
				return false
			}
			c.out = appendQuoted(c.out, s)
			return true
		}
	}
	return false
}

func appendQuoted(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}

// literal copies a number, true, false or null.
func (c *canonicalizer) literal() bool {
	from := c.at
	for c.at < len(c.src) && !bytes.ContainsRune([]byte(" \t\n\r,]}:{[\""), rune(c.src[c.at])) {
		c.at++
	}
	if !json.Valid(c.src[from:c.at]) {
		return false
	}
	c.out = append(c.out, c.src[from:c.at]...)
	return true
}
