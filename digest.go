package furl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:8]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// DigestOf is the digest of some bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// Seal computes the message's Digest over its canonical blocks: role, words,
// ids, tool names, arguments with sorted keys; media and opaque blocks by
// their bytes. Left out is what clients change without meaning to say
// something else: cache marks, thinking, key order, the string form of
// content against the block form, and the content of tool results, which
// count by their call's id alone because clients clear old results
// themselves.
func (m *Message) Seal() { m.Digest = m.extend(Digest{}, true) }

// Extend continues a chain of digests by the message. Chaining goes block by
// block, so that messages of one role in a row give the same chain however
// the client groups their blocks. What is furl's own is left out: the client
// does not send it. Instructions that lead the list are left out as well, and
// the chain stays zero: they are the preamble, which clients write anew, with
// the time of day in it for instance. See State.Extend for a message on a path.
func (m *Message) Extend(chain Digest) Digest {
	if chain.IsZero() && (m.Role == RoleSystem || m.Role == RoleDeveloper) {
		return chain
	}
	return m.extend(chain, false)
}

func (m *Message) extend(chain Digest, own bool) Digest {
	d := newDigester()
	defer d.done()
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind == KindThinking || b.Own && !own {
			continue
		}
		d.digest(chain)
		b.canonical(d, m)
		chain = d.sum()
	}
	return chain
}

func (b *Block) canonical(d *digester, m *Message) {
	role := m.Role
	if b.Kind == KindResult {
		role = RoleTool // Anthropic carries results in user messages
	}
	d.field(string(role))
	d.field(b.Kind.String())
	switch b.Kind {
	case KindText:
		d.field(b.Text)
	case KindCall:
		d.field(b.ID)
		d.field(b.Name)
		d.bytes(d.json.canonical(b.Args))
	case KindResult:
		d.field(b.ID)
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
