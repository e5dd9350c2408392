package furl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"strings"
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
func (m *Message) Seal() { m.Digest = m.Extend(Digest{}) }

// Extend continues a chain of digests by the message. Chaining goes block by
// block, so that messages of one role in a row give the same chain however
// the client groups their blocks.
func (m *Message) Extend(chain Digest) Digest {
	h := sha256.New()
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind == KindThinking {
			continue
		}
		h.Reset()
		h.Write(chain[:])
		b.canonical(h, m)
		h.Sum(chain[:0])
	}
	return chain
}

func (b *Block) canonical(h hash.Hash, m *Message) {
	role := m.Role
	if b.Kind == KindResult {
		role = RoleTool // Anthropic carries results in user messages
	}
	writeField(h, string(role))
	writeField(h, b.Kind.String())
	switch b.Kind {
	case KindText:
		writeField(h, b.Text)
	case KindCall:
		writeField(h, b.ID)
		writeField(h, b.Name)
		writeBytes(h, canonicalJSON(b.Args))
	case KindResult:
		writeField(h, b.ID)
	case KindImage, KindDocument:
		for _, media := range b.Media {
			h.Write(media.Digest[:])
		}
	default:
		writeField(h, b.Name)
		if b.End > b.Start && b.End <= len(m.Raw) {
			writeBytes(h, canonicalJSON(m.Raw[b.Start:b.End]))
		} else {
			writeField(h, b.Text)
		}
	}
}

// writeField writes a length and a string, so that fields cannot run together.
func writeField(h hash.Hash, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

func writeBytes(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

// canonicalJSON gives v without optional space, its object keys sorted and
// cache marks dropped. Numbers keep their text. What is not JSON is returned
// as it is.
func canonicalJSON(v []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	var out bytes.Buffer
	out.Grow(len(v))
	if !writeCanonical(&out, dec, 0) || dec.More() {
		return v
	}
	return out.Bytes()
}

// maxCanonicalDepth bounds the recursion on hostile input; deeper values
// digest by their bytes.
const maxCanonicalDepth = 512

func writeCanonical(out *bytes.Buffer, dec *json.Decoder, depth int) bool {
	if depth > maxCanonicalDepth {
		return false
	}
	tok, err := dec.Token()
	if err != nil {
		return false
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			out.WriteByte('[')
			for i := 0; dec.More(); i++ {
				if i > 0 {
					out.WriteByte(',')
				}
				if !writeCanonical(out, dec, depth+1) {
					return false
				}
			}
			_, err = dec.Token()
			out.WriteByte(']')
			return err == nil
		}
		return writeCanonicalObject(out, dec, depth)
	case string:
		writeJSONString(out, t)
	case json.Number:
		out.WriteString(string(t))
	case bool:
		if t {
			out.WriteString("true")
		} else {
			out.WriteString("false")
		}
	case nil:
		out.WriteString("null")
	}
	return true
}

func writeCanonicalObject(out *bytes.Buffer, dec *json.Decoder, depth int) bool {
	type field struct {
		key   string
		value []byte
	}
	var fields []field
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		key, ok := tok.(string)
		if !ok {
			return false
		}
		var value bytes.Buffer
		if !writeCanonical(&value, dec, depth+1) {
			return false
		}
		if key == "cache_control" {
			continue
		}
		fields = append(fields, field{key, value.Bytes()})
	}
	if _, err := dec.Token(); err != nil {
		return false
	}
	// Stable: duplicate keys keep their order and stay apart.
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	out.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			out.WriteByte(',')
		}
		writeJSONString(out, f.key)
		out.WriteByte(':')
		out.Write(f.value)
	}
	out.WriteByte('}')
	return true
}

func writeJSONString(out *bytes.Buffer, s string) {
	b, _ := json.Marshal(s) // a string always marshals
	out.Write(b)
}

// exact adds everything of the block that a provider renders, cache marks
// aside, with text in place of the recorded one.
func (b *Block) exact(h hash.Hash, text string, raw []byte) {
	writeField(h, b.Kind.String())
	writeField(h, b.ID)
	writeField(h, b.Name)
	writeField(h, text)
	writeBytes(h, b.Args)
	if b.Error {
		writeField(h, "error")
	}
	for i := range b.Media {
		h.Write(b.Media[i].Digest[:])
	}
	if b.Kind == KindOpaque && b.End > b.Start && b.End <= len(raw) {
		writeBytes(h, raw[b.Start:b.End])
	}
}
