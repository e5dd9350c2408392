package recall

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// document is what the index knows about a block beside its words.
type document struct {
	pos   furl.Pos
	at    int64 // milliseconds since 1970
	role  furl.Role
	kind  furl.Kind
	tool  string // of a call, and of the result that answers it
	error bool
}

// appendDocs writes documents that are in order.
func appendDocs(dst []byte, docs []document) []byte {
	var table stringTable
	for i := range docs {
		table.number(string(docs[i].role))
		table.number(docs[i].tool)
	}
	dst = binary.AppendUvarint(dst, uint64(len(table.strings)))
	for _, s := range table.strings {
		dst = appendBytes(dst, []byte(s))
	}
	var before document
	for i := range docs {
		d := &docs[i]
		dst = binary.AppendUvarint(dst, uint64(d.pos.Msg-before.pos.Msg))
		dst = binary.AppendUvarint(dst, uint64(d.pos.Block))
		dst = binary.AppendVarint(dst, d.at-before.at)
		dst = append(dst, byte(d.kind)<<1|boolByte(d.error))
		dst = binary.AppendUvarint(dst, uint64(table.number(string(d.role))))
		dst = binary.AppendUvarint(dst, uint64(table.number(d.tool)))
		before = *d
	}
	return dst
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// stringTable numbers strings as they come.
type stringTable struct {
	strings []string
	numbers map[string]int
}

func (t *stringTable) number(s string) int {
	n, ok := t.numbers[s]
	if !ok {
		if t.numbers == nil {
			t.numbers = make(map[string]int)
		}
		n = len(t.strings)
		t.numbers[s] = n
		t.strings = append(t.strings, s)
	}
	return n
}

// readDocs reads n documents.
func readDocs(payload []byte, n int) ([]document, error) {
	r := reader{buf: payload}
	table := make([]string, r.count())
	for i := range table {
		table[i] = string(r.bytes())
	}
	if n > len(r.buf) { // each takes more than a byte
		return nil, fmt.Errorf("%w: %d documents", errDamaged, n)
	}
	docs := make([]document, n)
	var before document
	for i := range docs {
		d := document{pos: furl.Pos{Msg: before.pos.Msg + furl.Seq(r.uint()), Block: int(r.uint())}}
		d.at = before.at + r.int()
		flags, role, tool := r.byte(), r.uint(), r.uint()
		if role >= uint64(len(table)) || tool >= uint64(len(table)) {
			return nil, fmt.Errorf("%w: document %d", errDamaged, i)
		}
		d.kind, d.error = furl.Kind(flags>>1), flags&1 != 0
		d.role, d.tool = furl.Role(table[role]), table[tool]
		docs[i], before = d, d
	}
	return docs, r.end("documents")
}

// calls remembers which calls wait for their result, so that results are
// known by their tools. It depends on the records alone, not on how they were
// cut into segments.
type calls struct {
	open []openCall
}

type openCall struct {
	id   uint64 // hash
	tool string
}

// maxOpen bounds the calls remembered; the oldest are forgotten. Agents make a
// few at a time.
const maxOpen = 64

func (c *calls) call(id, tool string) {
	if len(c.open) == maxOpen {
		c.open = c.open[:copy(c.open, c.open[1:])]
	}
	c.open = append(c.open, openCall{idHash(id), tool})
}

// result gives the tool whose result this is.
func (c *calls) result(id string) string {
	h := idHash(id)
	for i := len(c.open) - 1; i >= 0; i-- {
		if c.open[i].id == h {
			tool := c.open[i].tool
			c.open = append(c.open[:i], c.open[i+1:]...)
			return tool
		}
	}
	return ""
}

func idHash(id string) uint64 { return uint64(hashOf(id, false)) }

func (c *calls) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.open)))
	for _, o := range c.open {
		dst = binary.AppendUvarint(dst, o.id)
		dst = appendBytes(dst, []byte(o.tool))
	}
	return dst
}

func readCalls(r *reader) calls {
	var c calls
	for range r.count() {
		if o := (openCall{r.uint(), string(r.bytes())}); !r.bad && len(c.open) < maxOpen {
			c.open = append(c.open, o)
		}
	}
	return c
}

// batch collects what an index says about records that are read one by one:
// those above after, up to and with to.
type batch struct {
	after, to furl.Seq
	index     Index
	docs      []document
	calls     calls
	bytes     int // of text
}

// add takes the next record in.
func (b *batch) add(r *furl.Record) {
	b.to = r.Seq
	m, ok := r.Body.(*furl.Message)
	if !ok {
		return
	}
	for i := range m.Blocks {
		block := &m.Blocks[i]
		tool := ""
		switch block.Kind {
		case furl.KindCall:
			tool = block.Name
			b.calls.call(block.ID, tool)
		case furl.KindResult:
			tool = b.calls.result(block.ID)
		}
		var texts []string
		for text := range block.Texts() {
			if text != "" {
				texts = append(texts, text)
				b.bytes += len(text)
			}
		}
		if len(texts) == 0 {
			continue
		}
		pos := furl.Pos{Msg: r.Seq, Block: i}
		b.index.Add(pos, texts...)
		b.docs = append(b.docs, document{pos, millis(r.At), m.Role, block.Kind, tool, block.Error})
	}
}

// millis is a time as the index keeps it; 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
