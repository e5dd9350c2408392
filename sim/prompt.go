package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/token"
)

// prompt is a request as the model would read it: tools, system, messages.
type prompt struct {
	pieces []promptcache.Piece
	parts  []part // in parallel with pieces
	chain  []promptcache.Prefix
}

// part is the origin of a piece.
type part struct {
	msg, block int // msg < 0: not in a message
	kind       furl.Kind
	digest     furl.Digest
	// bound means that thinking after the part is bound to it. Thinking
	// itself, deferred tools and the separators that the sim adds are
	// excluded.
	bound bool
	gone  bool // not read, and not billed
}

// add appends a block. Its size is its count in the model's tokens.
func (p *prompt) add(c *call, b *furl.Block, at part) *promptcache.Piece {
	tokens := 0
	if !at.gone {
		tokens = c.tokens(b, at.digest)
	}
	positions := 1
	if n := len(p.parts); n > 0 && p.parts[n-1].kind == at.kind && p.parts[n-1].msg >= 0 &&
		(at.kind == furl.KindCall || at.kind == furl.KindResult) {
		positions = 0
	}
	p.parts = append(p.parts, at)
	p.pieces = append(p.pieces, promptcache.Piece{
		ID:        idOf(at.digest),
		Tokens:    tokens,
		Positions: positions,
	})
	return &p.pieces[len(p.pieces)-1]
}

// messages adds the messages of the request. Thinking that the provider drops
// itself is marked as gone.
func (p *prompt) messages(c *call) {
	list := c.req.Messages
	from := 0
	if c.model.Thinking.LastOnly {
		from = lastWords(list)
	}
	var d digester
	for i := range list {
		for j := range list[i].Blocks {
			b := &list[i].Blocks[j]
			thinking := b.Kind == furl.KindThinking
			at := part{msg: i, block: j, kind: b.Kind, digest: d.block(list[i].Role, b, list[i].Raw), bound: !thinking, gone: thinking && i < from}
			p.add(c, b, at)
		}
	}
}

// prune removes what the model does not read.
func (p *prompt) prune() {
	n := 0
	for i := range p.parts {
		if p.parts[i].gone && p.parts[i].msg >= 0 {
			continue
		}
		p.parts[n], p.pieces[n] = p.parts[i], p.pieces[i]
		n++
	}
	p.parts, p.pieces = p.parts[:n], p.pieces[:n]
}

// lastWords is the index of the newest message at which a provider drops the
// thinking before it, 0 if there is none.
func lastWords(list []furl.Message) int {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].DropsThinking(&list[i-1]) {
			return i
		}
	}
	return 0
}

// digester computes digests of blocks.
type digester struct {
	h   hash.Hash
	buf [1024]byte
}

func (d *digester) begin() {
	if d.h == nil {
		d.h = sha256.New()
	}
	d.h.Reset()
}

func (d *digester) sum() (x furl.Digest) {
	d.h.Sum(x[:0])
	return x
}

// field adds a string with its length, so that fields cannot run together.
func (d *digester) field(s string) {
	binary.LittleEndian.PutUint64(d.buf[:8], uint64(len(s)))
	d.h.Write(d.buf[:8])
	for len(s) > 0 {
		n := copy(d.buf[:], s)
		d.h.Write(d.buf[:n])
		s = s[n:]
	}
}

// block covers everything that a provider renders of a block, except cache
// breakpoints and white space in JSON.
func (d *digester) block(role furl.Role, b *furl.Block, raw []byte) furl.Digest {
	d.begin()
	d.field(string(role))
	d.field(b.Kind.String())
	d.field(b.ID)
	d.field(b.Name)
	d.field(b.Text)
	if len(b.Args) > 0 {
		d.h.Write(rawjson.Compact(nil, b.Args))
	}
	if b.Error {
		d.field("error")
	}
	for i := range b.Media {
		d.h.Write(b.Media[i].Digest[:])
	}
	if (b.Kind == furl.KindOpaque || b.Kind == furl.KindThinking) && b.End > b.Start && b.End <= len(raw) {
		own := raw[b.Start:b.End]
		own = rawjson.Splice(own, rawjson.DropField(own, "cache_control"))
		d.h.Write(rawjson.Compact(nil, own))
	}
	return d.sum()
}

// object covers a JSON value, except cache breakpoints and white space.
func (d *digester) object(raw []byte) furl.Digest {
	d.begin()
	raw = rawjson.Splice(raw, rawjson.DropField(raw, "cache_control"))
	d.h.Write(rawjson.Compact(nil, raw))
	return d.sum()
}

// text covers a text.
func (d *digester) text(kind, s string) furl.Digest {
	d.begin()
	d.field(kind)
	d.field(s)
	return d.sum()
}

// sizes caches the sizes of blocks, because every request repeats those of
// the previous one.
type sizes struct {
	mu   sync.Mutex
	memo promptcache.Generations[furl.Digest, int]
}

// tokens counts a block in the model's tokens. The rule is fixed: the
// o200k_base count of its text, plus four for its envelope, times the model's
// TokenScale, rounded up.
func (c *call) tokens(b *furl.Block, digest furl.Digest) int {
	n, ok := 0, false
	if len(b.Media) == 0 && !digest.IsZero() {
		c.sim.sizes.mu.Lock()
		n, ok = c.sim.sizes.memo.Get(digest)
		c.sim.sizes.mu.Unlock()
	}
	if !ok {
		one := *b
		one.Tokens = 0
		m := furl.Message{Blocks: []furl.Block{one}}
		m.Measure(token.For(&c.model))
		if n = m.Tokens(); len(b.Media) == 0 && !digest.IsZero() {
			c.sim.sizes.mu.Lock()
			c.sim.sizes.memo.Put(digest, n)
			c.sim.sizes.mu.Unlock()
		}
	}
	if scale := c.model.TokenScale; scale > 0 {
		n = int(math.Ceil(float64(n) * scale))
	}
	return n
}

func idOf(d furl.Digest) uint64 { return binary.LittleEndian.Uint64(d[:]) }
