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
// is what stood in the one before. What was decoded of that is used again:
// the parts are told by their bytes, and only what is new is read.

// Decode is codec.DecodeRequest at the cost of what is new: the elements with
// which an earlier request of the tenant's began too are not read again. Chains
// of the request are filled in. An error is the codec's own.
func (a *Sessions) Decode(codec protocol.Codec, body []byte) (*protocol.Request, error) {
	if req := a.decoded.more(decodedKey{a.Tenant(), codec.Format()}, codec, body); req != nil {
		return req, nil
	}
	req, err := codec.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	req.Chains = chainsOf(req.Messages)
	if req.Ambiguous != "" {
		return req, nil // the next request's beginning would no longer tell
	}
	a.decoded.keep(decodedKey{a.Tenant(), codec.Format()}, req, nil, 0)
	return req, nil
}

// decoded keeps what was decoded of the newest requests, the last used first.
type decoded struct {
	seed   maphash.Seed
	number int   // of beginnings that are kept at most
	size   int64 // of their elements in memory, in bytes, at most

	mu   sync.Mutex
	list []*beginning
}

type decodedKey struct {
	tenant furl.Tenant
	format furl.Format
}

// beginning is that of a request: its body up to the end of its list's last
// element. It does not change.
type beginning struct {
	decodedKey
	// lead is how many of the elements are read again each time: instructions
	// at the beginning, which count as preamble, and one more, for there to
	// be a list.
	lead     int
	elements []element
	size     int64
	at       time.Time   // when it was kept
	tail     [probe]byte // the last bytes of the first element
}

type element struct {
	start, end int    // in the body
	sum        uint64 // of the bytes since the end of the one before
	message    furl.Message
	chain      furl.Digest
}

// probe is how many bytes are compared before more is looked at: most
// beginnings are those of other sessions.
const probe = 16

// keep takes in what was decoded of a request, of which so many elements are
// those of the beginning that it goes on from, and takes that one's place if
// hardly anything of it is missing. What it holds has memory of its own.
func (d *decoded) keep(key decodedKey, req *protocol.Request, was *beginning, same int) {
	lead := 0
	for lead < len(req.Messages) && (req.Messages[lead].Role == furl.RoleSystem || req.Messages[lead].Role == furl.RoleDeveloper) {
		lead++
	}
	if lead++; lead >= len(req.Messages) {
		return // there is nothing to save
	}
	b := &beginning{decodedKey: key, lead: lead, elements: make([]element, len(req.Messages))}
	if was != nil {
		copy(b.elements, was.elements[:same])
		if same < len(was.elements)-replaced {
			was = nil
		}
	}
	at := 0
	for i := range b.elements {
		e := &b.elements[i]
		m := &req.Messages[i]
		end := req.Offsets[i] + len(m.Raw)
		if end <= at || end > len(req.Body) {
			return // no list as others are
		}
		if i >= same {
			*e = element{req.Offsets[i], end, maphash.Bytes(d.seed, req.Body[at:end]), *m, req.Chains[i]}
			own(&e.message)
			e.message.Raw = nil
		}
		b.size += int64(len(m.Raw))
		at = end
	}
	b.size = membudget.Session(b.size, int64(len(b.elements))) / 2 // there are no bytes beside the texts
	copy(b.tail[:], req.Body[max(0, b.elements[0].end-probe):b.elements[0].end])
	d.put(b, was)
}

// own gives the blocks of a message memory of their own.
func own(m *furl.Message) {
	m.Blocks = slices.Clone(m.Blocks)
	for i := range m.Blocks {
		m.Blocks[i].Args = slices.Clone(m.Blocks[i].Args)
	}
}

// put keeps a beginning, as the one used last.
func (d *decoded) put(b, was *beginning) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if was != nil {
		d.list = slices.DeleteFunc(d.list, func(x *beginning) bool { return x == was })
	}
	b.at = time.Now()
	d.list = slices.Insert(d.list, 0, b)
	d.trim(b.at)
}

// rest lets go of what was not used for long, and reports whether it did.
func (d *decoded) rest() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := len(d.list)
	d.trim(time.Now())
	return len(d.list) < was
}

// What was not used for so long is most likely over, and shares that part of the
// room.
const (
	resting      = 2 * time.Minute
	restingShare = 4
)

// trim lets go of what was not used for longest while there is too much, but
// for the newest.
func (d *decoded) trim(now time.Time) {
	total := int64(0)
	for i, x := range d.list {
		total += x.size
		over := total > d.size || total > d.size/restingShare && now.Sub(x.at) >= resting
		if i > 0 && (i >= d.number || over) {
			clear(d.list[i:])
			d.list = d.list[:i]
			return
		}
	}
}

// clear forgets everything.
func (d *decoded) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = nil
}

// find gives the beginning that a body shares most elements with, and how many.
func (d *decoded) find(key decodedKey, body []byte) (best *beginning, same int) {
	d.mu.Lock()
	list := slices.Clone(d.list)
	d.mu.Unlock()
	for _, b := range list {
		if b.decodedKey != key {
			continue
		}
		if n := b.shared(d.seed, body, best, same); n > same {
			best, same = b, n
		}
	}
	return best, same
}

// shared is how many elements a body begins with too. It is known to begin with
// so many of another beginning.
func (b *beginning) shared(seed maphash.Seed, body []byte, other *beginning, known int) int {
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

// more decodes a body that begins as an earlier one did: what the two share is
// cut out of it, the rest is read, and both are put together. It gives nil if
// there is none, or the rest is not as was to be expected.
func (d *decoded) more(key decodedKey, codec protocol.Codec, body []byte) *protocol.Request {
	b, same := d.find(key, body)
	if b == nil || same <= b.lead {
		return nil
	}
	outline := b.outline(body, same)
	api := wire.For(key.format)
	if outline == nil || api == nil || lists(outline, api.List()) != 1 {
		return nil
	}
	rest, err := codec.DecodeRequest(outline)
	if err != nil || rest.Ambiguous != "" {
		return nil
	}
	lead, shift := b.lead, len(body)-len(outline)
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
	d.keep(key, &req, b, same)
	return &req
}

// replaced is how many elements at the end of a request may be others in the
// next for it to count as the same conversation: cache marks move on.
const replaced = 6

// outline gives the body without the elements from the lead to the shared ones,
// nil if what follows them is not as it should be.
func (b *beginning) outline(body []byte, same int) []byte {
	head := body[:b.elements[b.lead-1].end]
	rest := space(body[b.elements[same-1].end:])
	if len(rest) == 0 || rest[0] != ',' && rest[0] != ']' {
		return nil
	}
	if rest[0] == ',' {
		if next := space(rest[1:]); len(next) == 0 || next[0] == ']' {
			return nil // no JSON, which the outline must not hide
		}
	}
	return slices.Concat(head, rest)
}

func space(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// lists counts the fields of that name: of several lists the last one counts.
func lists(body []byte, name string) (n int) {
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		if string(key) == name {
			n++
		}
	}
	return n
}
