package clients

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Clients send their whole history with every request, so nearly all of a body
// repeats the previous one. The decode cache keeps the decoded messages of recent
// requests, finds the longest common prefix by hashes, and decodes only the rest.

// Decodes is a cache of decoded requests, most recently used first.
type Decodes struct {
	maxPrefixes int   // largest number of prefixes
	maxBytes    int64 // largest size of their elements in memory, in bytes

	mu       sync.Mutex
	prefixes []*prefix
	bytes    int64 // sum of their sizes
}

// DecodeKey is whose requests in which format share messages.
type DecodeKey struct {
	Tenant furl.Tenant
	Format furl.Format
}

// prefix is the decoded prefix of a request: its body up to the end of the last
// message. It is immutable.
type prefix struct {
	DecodeKey
	// reread is the number of elements that are always decoded again: the
	// instructions at the start, which count as preamble, and one more, so that
	// the list is not empty.
	reread   int
	elements []*element // shared with the prefixes that continue this one
	// frame is the request without its messages. Its Outline is the body without
	// the elements of the list after the first reread ones.
	frame    *protocol.Request
	size     int64
	lastUsed time.Time   // when it was added
	first    element     // the first element, without its message
	tail     [probe]byte // last bytes of the first element
}

type element struct {
	start, end int    // in the body
	gap        uint64 // gapSum of the bytes since the end of the previous element
	sum        uint64 // rawjson.Sum
	message    furl.Message
	chain      furl.Digest
}

// probe is how many bytes are compared before hashes are computed. Most prefixes
// belong to other sessions and differ there.
const probe = 16

// Add adds a decoded request to the cache, which copies what it keeps, and sets its Sums.
func (d *Decodes) Add(key DecodeKey, req *protocol.Request) { d.add(key, req, nil, nil, 0) }

// add adds a decoded request to the cache, and sets its Sums. frame is its frame if the cache has that
// already. Its first same elements are those of was, which it replaces unless was has
// many other elements. The cache copies what it keeps.
func (d *Decodes) add(key DecodeKey, req, frame *protocol.Request, was *prefix, same int) {
	lead := 0
	for lead < len(req.Messages) && (req.Messages[lead].Role == furl.RoleSystem || req.Messages[lead].Role == furl.RoleDeveloper) {
		lead++
	}
	if lead++; lead >= len(req.Messages) {
		return // nothing to reuse
	}
	b := &prefix{DecodeKey: key, reread: lead, elements: make([]*element, len(req.Messages)), frame: frame}
	if was != nil {
		copy(b.elements, was.elements[:same])
		if same < len(was.elements)-maxReplaced {
			was = nil
		}
	}
	at := 0
	sums := make([]uint64, len(b.elements))
	for i := range b.elements {
		m := &req.Messages[i]
		start, end := req.Offsets[i], req.Offsets[i]+len(m.Raw)
		if start < at || end <= at || end > len(req.Body) {
			return // unexpected offsets
		}
		if i >= same {
			e := &element{start, end, gapSum(req.Body[at:start]), rawjson.Sum(m.Raw), *m, req.Chains[i]}
			CloneBlocks(&e.message)
			e.message.Raw = nil
			b.elements[i] = e
		}
		sums[i] = b.elements[i].sum
		b.size += int64(len(m.Raw))
		at = end
	}
	req.Sums = sums
	if frame == nil {
		b.frame = frameOf(req, b.elements[lead-1].end, at)
	}
	b.size = membudget.Session(b.size, int64(len(b.elements)))/2 + 2*int64(len(b.frame.Outline)) // raw bytes of messages are not kept
	b.first = element{start: b.elements[0].start, end: b.elements[0].end, gap: b.elements[0].gap, sum: b.elements[0].sum}
	copy(b.tail[:], req.Body[max(0, b.first.end-probe):b.first.end])
	d.put(b, was)
}

// frameOf returns a copy of a request without its messages and the bytes of its body
// between two offsets.
func frameOf(req *protocol.Request, from, to int) *protocol.Request {
	frame := *req
	frame.Body, frame.Messages, frame.Offsets, frame.Chains, frame.Sums = nil, nil, nil, nil, nil
	frame.Preamble = cloned(req.Preamble)
	frame.Outline = slices.Concat(req.Body[:from], req.Body[to:])
	return &frame
}

// CloneBlocks replaces the blocks of a message with copies.
func CloneBlocks(m *furl.Message) { m.Blocks = cloned(m.Blocks) }

// cloned returns a copy of blocks, whose texts are copies already.
func cloned(blocks []furl.Block) []furl.Block {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		blocks[i].Args = slices.Clone(blocks[i].Args)
	}
	return blocks
}

// put adds a prefix as the most recently used one, and removes was.
func (d *Decodes) put(b, was *prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.prefixes, was); i >= 0 {
		d.prefixes = slices.Delete(d.prefixes, i, i+1)
		d.bytes -= was.size
	}
	b.lastUsed = time.Now()
	d.prefixes = slices.Insert(d.prefixes, 0, b)
	d.bytes += b.size
	d.trim(b.lastUsed)
}

// trimIdle evicts idle prefixes, and reports whether there were any.
func (d *Decodes) trimIdle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := len(d.prefixes)
	d.trim(time.Now())
	return len(d.prefixes) < was
}

// trim evicts the least recently used prefixes above the limits, but never the most
// recent one.
func (d *Decodes) trim(now time.Time) {
	for last := len(d.prefixes) - 1; last > 0; last-- {
		x := d.prefixes[last]
		if last < d.maxPrefixes && d.bytes <= d.maxBytes && (d.bytes <= d.maxBytes/membudget.IdleShare || now.Sub(x.lastUsed) < membudget.IdleAfter) {
			return
		}
		d.bytes -= x.size
		d.prefixes = slices.Delete(d.prefixes, last, last+1)
	}
}

// clear empties the cache.
func (d *Decodes) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prefixes, d.bytes = nil, 0
}

// find returns the prefix that shares most elements with a body, and their number.
func (d *Decodes) find(key DecodeKey, body []byte) (best *prefix, same int) {
	d.mu.Lock()
	list := slices.Clone(d.prefixes)
	d.mu.Unlock()
	var first element // of the body, if it is where that of the latest prefix was
	for _, b := range list {
		if b.DecodeKey != key || !b.mayStart(body, &first) {
			continue
		}
		if n := b.sharedElements(body, best, same); n > same {
			best, same = b, n
		}
	}
	return best, same
}

// mayStart reports whether a body starts with the first element of b. first is what an
// earlier call has computed, because most prefixes of other sessions have their first
// element at the same place.
func (b *prefix) mayStart(body []byte, first *element) bool {
	f := &b.first
	if f.end > len(body) || !bytes.HasSuffix(body[:f.end], b.tail[:min(f.end, probe)]) {
		return false
	}
	if first.start != f.start || first.end != f.end {
		*first = element{start: f.start, end: f.end, gap: gapSum(body[:f.start]), sum: rawjson.Sum(body[f.start:f.end])}
	}
	return first.gap == f.gap && first.sum == f.sum
}

// sharedElements returns how many elements a body that starts with that of b has in common
// with b. The body is known to start with the first known elements of other.
func (b *prefix) sharedElements(body []byte, other *prefix, known int) int {
	at := b.first.end
	for i := 1; i < len(b.elements); i++ {
		e := b.elements[i]
		if i < known {
			if o := other.elements[i]; e == o || e.start == o.start && e.end == o.end && e.gap == o.gap && e.sum == o.sum {
				at = e.end
				continue
			}
			known = 0
		}
		if e.end > len(body) || gapSum(body[at:e.start]) != e.gap || rawjson.Sum(body[e.start:e.end]) != e.sum {
			return i
		}
		at = e.end
	}
	return len(b.elements)
}

// gapSum is the hash of the bytes before an element, 0 for a comma alone.
func gapSum(gap []byte) uint64 {
	if len(gap) == 1 && gap[0] == ',' {
		return 0
	}
	return rawjson.Sum(gap)
}

// Decode decodes a body that starts like a cached one: it decodes only what follows
// the common elements, and what is outside the list if that has changed. It returns nil
// if no cached prefix matches, or the rest has an unexpected form. The error is that of
// reserve, which may be nil: what the cache has is not counted again.
func (d *Decodes) Decode(key DecodeKey, codec protocol.Codec, body []byte, reserve Reserve) (*protocol.Request, error) {
	b, same := d.find(key, body)
	api := wire.For(key.Format)
	if b == nil || same <= b.reread || api == nil {
		return nil, nil
	}
	fresh, frame := b.newElements(api.List(), body, same), b.frame
	if fresh == nil {
		fresh, frame = b.outlined(api.List(), body, same), nil
	}
	if fresh == nil {
		return nil, nil
	}
	if reserve != nil {
		n, parts := MemoryOf(fresh.text)
		shared := b.parts(same)
		if err := reserve(n+membudget.Request(len(body)-len(fresh.text), shared, 0), parts+shared); err != nil {
			return nil, err
		}
	}
	rest, err := codec.DecodeRequest(fresh.text)
	if err != nil || rest.Ambiguous != "" || !fresh.fits(rest) {
		return nil, nil
	}
	req := *rest
	if req.Outline = fresh.text; frame != nil {
		req = *frame
	}
	req.Body = body
	n := same + len(rest.Messages) - fresh.known
	req.Messages, req.Offsets, req.Chains = make([]furl.Message, 0, n), make([]int, 0, n), make([]furl.Digest, 0, n)
	for _, e := range b.elements[:same] {
		m := e.message
		m.Raw = body[e.start:e.end:e.end]
		req.Messages, req.Offsets, req.Chains = append(req.Messages, m), append(req.Offsets, e.start), append(req.Chains, e.chain)
	}
	for i := fresh.known; i < len(rest.Messages); i++ {
		m, at := rest.Messages[i], rest.Offsets[i]+fresh.shift
		m.Raw = body[at : at+len(m.Raw) : at+len(m.Raw)]
		req.Messages, req.Offsets = append(req.Messages, m), append(req.Offsets, at)
		req.Chains = append(req.Chains, furl.ChainAt(req.Messages, req.Chains, len(req.Messages)-1))
	}
	d.add(key, &req, frame, b, same)
	return &req, nil
}

// fresh is a small body with what is new in a request.
type fresh struct {
	text  []byte
	known int // number of elements at the start of its list that the cache has
	last  int // offset of the last of them, 0 for none
	shift int // from an offset of a later element to its offset in the request's body
	alone bool
}

// fits reports whether the elements are where they are expected. If they are alone,
// nothing else may be in the text: it may end the list early and begin another field.
func (f *fresh) fits(req *protocol.Request) bool {
	n := len(req.Messages)
	if !f.alone {
		return n >= f.known && req.Offsets[f.known-1] == f.last
	}
	return n > 0 && string(trimSpace(f.text[req.Offsets[n-1]+len(req.Messages[n-1].Raw):])) == "]}"
}

// newElements returns a body with nothing but the elements after the common ones, nil
// if there are none, or the rest of the request is not that of the prefix.
func (b *prefix) newElements(list string, body []byte, same int) *fresh {
	at := b.elements[same-1].end
	text, ok := bytes.CutSuffix(body[at:], b.frame.Outline[b.elements[b.reread-1].end:])
	if text = trimSpace(text); !ok || len(text) == 0 || text[0] != ',' {
		return nil
	}
	open := `{"` + list + `":[`
	f := &fresh{alone: true, text: make([]byte, 0, len(open)+len(text)+1)}
	f.shift = len(body) - len(b.frame.Outline) + b.elements[b.reread-1].end - len(text) + 1 - len(open)
	f.text = append(append(append(f.text, open...), text[1:]...), "]}"...)
	return f
}

// parts returns the number of messages and blocks in the first n elements.
func (b *prefix) parts(n int) int {
	parts := n
	for i := range b.elements[:n] {
		parts += len(b.elements[i].message.Blocks)
	}
	return parts
}

// maxReplaced is how many elements at the end of a request may differ in the next
// request of the same conversation, for example because cache marks move.
const maxReplaced = 6

// outlined returns the body without the common elements after the first reread ones,
// nil if the bytes that follow them are not valid JSON, or several fields have the name of the list.
func (b *prefix) outlined(list string, body []byte, same int) *fresh {
	last := b.elements[b.reread-1]
	head := body[:last.end]
	rest := trimSpace(body[b.elements[same-1].end:])
	if len(rest) == 0 || rest[0] != ',' && rest[0] != ']' {
		return nil
	}
	if rest[0] == ',' {
		if next := trimSpace(rest[1:]); len(next) == 0 || next[0] == ']' {
			return nil // invalid JSON, which the outline would hide
		}
	}
	text := slices.Concat(head, rest)
	if countFields(text, list) != 1 {
		return nil
	}
	return &fresh{text: text, known: b.reread, last: last.start, shift: len(body) - len(text)}
}

func trimSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// countFields counts the fields of that name. With several, decoders use the last.
func countFields(body []byte, name string) (n int) {
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		if string(key) == name {
			n++
		}
	}
	return n
}
