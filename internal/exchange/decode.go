package exchange

import (
	"bytes"
	"hash/maphash"
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

// Decode is codec.DecodeRequest with a cache: messages at the start that an earlier
// request of the tenant also had are not decoded again. It sets Chains of the
// request. Errors are those of the codec.
func (a *Sessions) Decode(codec protocol.Codec, body []byte) (*protocol.Request, error) {
	if req := a.decodes.decode(decodeKey{a.Tenant(), codec.Format()}, codec, body); req != nil {
		return req, nil
	}
	req, err := codec.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	req.Chains = chainsOf(req.Messages)
	if req.Ambiguous != "" {
		return req, nil // a cached prefix would hide the ambiguity in the next request
	}
	a.decodes.add(decodeKey{a.Tenant(), codec.Format()}, req, nil, 0)
	return req, nil
}

// decodeCache is a cache of decoded requests, most recently used first.
type decodeCache struct {
	seed        maphash.Seed
	maxPrefixes int   // largest number of prefixes
	maxBytes    int64 // largest size of their elements in memory, in bytes

	mu       sync.Mutex
	prefixes []*prefix
}

type decodeKey struct {
	tenant furl.Tenant
	format furl.Format
}

// prefix is the decoded prefix of a request: its body up to the end of the last
// message. It is immutable.
type prefix struct {
	decodeKey
	// reread is the number of elements that are always decoded again: the
	// instructions at the start, which count as preamble, and one more, so that
	// the list is not empty.
	reread   int
	elements []element
	size     int64
	lastUsed time.Time   // when it was added
	tail     [probe]byte // last bytes of the first element
}

type element struct {
	start, end int    // in the body
	sum        uint64 // hash of the bytes since the end of the previous element
	message    furl.Message
	chain      furl.Digest
}

// probe is how many bytes are compared before hashes are computed. Most prefixes
// belong to other sessions and differ there.
const probe = 16

// add adds a decoded request to the cache. Its first same elements are those of
// was, which it replaces unless was has many other elements. The cache copies what
// it keeps.
func (d *decodeCache) add(key decodeKey, req *protocol.Request, was *prefix, same int) {
	lead := 0
	for lead < len(req.Messages) && (req.Messages[lead].Role == furl.RoleSystem || req.Messages[lead].Role == furl.RoleDeveloper) {
		lead++
	}
	if lead++; lead >= len(req.Messages) {
		return // nothing to reuse
	}
	b := &prefix{decodeKey: key, reread: lead, elements: make([]element, len(req.Messages))}
	if was != nil {
		copy(b.elements, was.elements[:same])
		if same < len(was.elements)-maxReplaced {
			was = nil
		}
	}
	at := 0
	for i := range b.elements {
		e := &b.elements[i]
		m := &req.Messages[i]
		end := req.Offsets[i] + len(m.Raw)
		if end <= at || end > len(req.Body) {
			return // unexpected offsets
		}
		if i >= same {
			*e = element{req.Offsets[i], end, maphash.Bytes(d.seed, req.Body[at:end]), *m, req.Chains[i]}
			cloneBlocks(&e.message)
			e.message.Raw = nil
		}
		b.size += int64(len(m.Raw))
		at = end
	}
	b.size = membudget.Session(b.size, int64(len(b.elements))) / 2 // raw bytes are not kept
	copy(b.tail[:], req.Body[max(0, b.elements[0].end-probe):b.elements[0].end])
	d.put(b, was)
}

// cloneBlocks replaces the blocks of a message with copies.
func cloneBlocks(m *furl.Message) {
	m.Blocks = slices.Clone(m.Blocks)
	for i := range m.Blocks {
		m.Blocks[i].Args = slices.Clone(m.Blocks[i].Args)
	}
}

// put adds a prefix as the most recently used one, and removes was.
func (d *decodeCache) put(b, was *prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if was != nil {
		d.prefixes = slices.DeleteFunc(d.prefixes, func(x *prefix) bool { return x == was })
	}
	b.lastUsed = time.Now()
	d.prefixes = slices.Insert(d.prefixes, 0, b)
	d.trim(b.lastUsed)
}

// trimIdle evicts idle prefixes, and reports whether there were any.
func (d *decodeCache) trimIdle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := len(d.prefixes)
	d.trim(time.Now())
	return len(d.prefixes) < was
}

// trim evicts the least recently used prefixes above the limits, but never the most
// recent one.
func (d *decodeCache) trim(now time.Time) {
	total := int64(0)
	for i, x := range d.prefixes {
		total += x.size
		over := total > d.maxBytes || total > d.maxBytes/membudget.IdleShare && now.Sub(x.lastUsed) >= membudget.IdleAfter
		if i > 0 && (i >= d.maxPrefixes || over) {
			clear(d.prefixes[i:])
			d.prefixes = d.prefixes[:i]
			return
		}
	}
}

// clear empties the cache.
func (d *decodeCache) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prefixes = nil
}

// find returns the prefix that shares most elements with a body, and their number.
func (d *decodeCache) find(key decodeKey, body []byte) (best *prefix, same int) {
	d.mu.Lock()
	list := slices.Clone(d.prefixes)
	d.mu.Unlock()
	for _, b := range list {
		if b.decodeKey != key {
			continue
		}
		if n := b.sharedElements(d.seed, body, best, same); n > same {
			best, same = b, n
		}
	}
	return best, same
}

// sharedElements returns how many elements a body has in common with b. The
// body is known to start with the first known elements of other.
func (b *prefix) sharedElements(seed maphash.Seed, body []byte, other *prefix, known int) int {
	if end := b.elements[0].end; end > len(body) || !bytes.HasSuffix(body[:end], b.tail[:min(end, probe)]) {
		return 0
	}
	at := 0
	for i := range b.elements {
		e := &b.elements[i]
		if i < known {
			if o := &other.elements[i]; e.end == o.end && e.sum == o.sum {
				at = e.end
				continue
			}
			known = 0
		}
		if e.end > len(body) || maphash.Bytes(seed, body[at:e.end]) != e.sum {
			return i
		}
		at = e.end
	}
	return len(b.elements)
}

// decode decodes a body that starts like a cached one: it removes the common
// elements from the body, decodes the rest, and joins the two. It returns nil
// if no cached prefix matches, or the rest has an unexpected form.
func (d *decodeCache) decode(key decodeKey, codec protocol.Codec, body []byte) *protocol.Request {
	b, same := d.find(key, body)
	if b == nil || same <= b.reread {
		return nil
	}
	outline := b.outline(body, same)
	api := wire.For(key.format)
	if outline == nil || api == nil || countFields(outline, api.List()) != 1 {
		return nil
	}
	rest, err := codec.DecodeRequest(outline)
	if err != nil || rest.Ambiguous != "" {
		return nil
	}
	lead, shift := b.reread, len(body)-len(outline)
	if len(rest.Messages) < lead || rest.Offsets[lead-1] != b.elements[lead-1].start {
		return nil
	}
	req := *rest
	req.Body, req.Outline = body, outline
	n := same + len(rest.Messages) - lead
	req.Messages, req.Offsets, req.Chains = make([]furl.Message, 0, n), make([]int, 0, n), make([]furl.Digest, 0, n)
	for i := range b.elements[:same] {
		e := &b.elements[i]
		m := e.message
		m.Raw = body[e.start:e.end:e.end]
		req.Messages, req.Offsets, req.Chains = append(req.Messages, m), append(req.Offsets, e.start), append(req.Chains, e.chain)
	}
	chain := b.elements[same-1].chain
	for i := lead; i < len(rest.Messages); i++ {
		m, at := rest.Messages[i], rest.Offsets[i]+shift
		m.Raw = body[at : at+len(m.Raw) : at+len(m.Raw)]
		chain = m.Extend(chain)
		req.Messages, req.Offsets, req.Chains = append(req.Messages, m), append(req.Offsets, at), append(req.Chains, chain)
	}
	d.add(key, &req, b, same)
	return &req
}

// maxReplaced is how many elements at the end of a request may differ in the next
// request of the same conversation, for example because cache marks move.
const maxReplaced = 6

// outline returns the body without the common elements after the first lead ones,
// nil if the bytes that follow them are not valid JSON.
func (b *prefix) outline(body []byte, same int) []byte {
	head := body[:b.elements[b.reread-1].end]
	rest := trimSpace(body[b.elements[same-1].end:])
	if len(rest) == 0 || rest[0] != ',' && rest[0] != ']' {
		return nil
	}
	if rest[0] == ',' {
		if next := trimSpace(rest[1:]); len(next) == 0 || next[0] == ']' {
			return nil // invalid JSON, which the outline would hide
		}
	}
	return slices.Concat(head, rest)
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
