package recall

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// document has the stored fields of a block: where it is, and what filters ask
// for.
type document struct {
	pos   furl.Pos
	at    int64 // milliseconds since 1970; 0: unknown
	role  furl.Role
	kind  furl.Kind
	tool  string // of a call, and of the result that answers it
	error bool
}

// encodeDocuments appends documents, which are in the order of their positions.
func encodeDocuments(dst []byte, docs []document) []byte {
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

// decodeDocuments reads n documents.
func decodeDocuments(payload []byte, n int) ([]document, error) {
	r := payloadReader{buf: payload}
	table := make([]string, r.count())
	for i := range table {
		table[i] = string(r.bytes())
	}
	if n > len(r.buf) { // each has more than a byte
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

// stringTable numbers distinct strings.
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

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// millis returns a time in milliseconds since 1970; 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMillis is the inverse of millis.
func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
