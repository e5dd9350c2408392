package furl

import (
	"bytes"
	"encoding/json"
	"strings"
	"unsafe"
)

// What an encoded message needs of its blocks is mostly in the body already:
// the words of a block are a string there. So a text is stored as a reference
// to the bytes it was decoded from, and as itself only where none are found.
const (
	textNone    = iota // no text
	textInline         // follows
	textPlain          // offset and length in the body, as it stands
	textEscaped        // offset and length in the body, with JSON's escapes
)

// The flags of an encoded block.
const (
	flagError = 1 << iota
	flagCacheMark
	flagMedia
	flagSignature
	flagOwn
)

func (e *encoder) message(m *Message) {
	e.raw = m.Raw
	e.string(string(m.Role))
	e.string(string(m.Format))
	e.bytes(m.Digest[:])
	e.uint(uint64(len(m.Blocks)))
	for i := range m.Blocks {
		e.block(&m.Blocks[i])
	}
}

func (e *encoder) block(b *Block) {
	// Texts are looked for among the bytes of their own block, so that a
	// message of many blocks is not searched once for each.
	e.at, e.end = 0, len(e.raw)
	if b.End > b.Start && b.End <= len(e.raw) {
		e.at, e.end = b.Start, b.End
	}
	flags := byte(0)
	if b.Error {
		flags |= flagError
	}
	if b.CacheMark {
		flags |= flagCacheMark
	}
	if len(b.Media) > 0 {
		flags |= flagMedia
	}
	if b.Signature != 0 {
		flags |= flagSignature
	}
	if b.Own {
		flags |= flagOwn
	}
	e.byte(byte(b.Kind))
	e.byte(flags)
	e.int(b.Start)
	e.int(b.End)
	e.int(b.Tokens)
	e.string(b.ID)
	e.string(b.Name)
	e.text(b.Text)
	e.text(unsafe.String(unsafe.SliceData(b.Args), len(b.Args)))
	if flags&flagSignature != 0 {
		e.int(b.Signature)
	}
	if flags&flagMedia != 0 {
		e.uint(uint64(len(b.Media)))
		for i := range b.Media {
			e.media(&b.Media[i])
		}
	}
}

func (e *encoder) media(m *Media) {
	e.byte(byte(m.Kind))
	e.string(m.Type)
	e.int(m.Bytes)
	e.int(m.Width)
	e.int(m.Height)
	e.bytes(m.Digest[:])
}

// text writes a text or where it stands in the body. Short ones are not worth
// looking for.
func (e *encoder) text(s string) {
	if s == "" {
		e.byte(textNone)
		return
	}
	if len(s) >= 16 {
		if kind, from, to, ok := e.find(s); ok {
			e.byte(kind)
			e.uint(uint64(from))
			e.uint(uint64(to - from))
			e.at = to
			return
		}
	}
	e.byte(textInline)
	e.string(s)
}

// find looks for a text behind the one found before: as it stands, or as the
// string literal that decodes to it.
func (e *encoder) find(s string) (kind byte, from, to int, ok bool) {
	rest := e.raw[e.at:e.end]
	if i := bytes.Index(rest, unsafe.Slice(unsafe.StringData(s), len(s))); i >= 0 {
		return textPlain, e.at + i, e.at + i + len(s), true
	}
	for at := e.at; ; {
		quote := bytes.IndexByte(e.raw[at:e.end], '"')
		if quote < 0 {
			return 0, 0, 0, false
		}
		from := at + quote
		literal := e.raw[from:e.end]
		to := from + quotedEnd(unsafe.String(unsafe.SliceData(literal), len(literal)))
		at = to
		// A literal is at least as long as what it decodes to, and at most
		// six times as long, but for bytes that are no UTF-8.
		if n := to - from - 2; n < len(s) || n > 6*len(s) {
			continue
		}
		if decoded, err := literalText(e.raw[from:to]); err == nil && decoded == s {
			return textEscaped, from, to, true
		}
	}
}

// literalText decodes a JSON string literal.
func literalText(literal []byte) (s string, err error) {
	if t, ok := simpleText(literal); ok {
		return t, nil
	}
	err = json.Unmarshal(literal, &s)
	return s, err
}

// simpleText decodes the escapes that transcripts are full of; false where a
// literal has others or is none.
func simpleText(literal []byte) (string, bool) {
	if len(literal) < 2 || literal[0] != '"' || literal[len(literal)-1] != '"' {
		return "", false
	}
	in := literal[1 : len(literal)-1]
	var out strings.Builder
	out.Grow(len(in))
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			out.Write(in)
			return out.String(), true
		}
		if i+1 == len(in) {
			return "", false
		}
		out.Write(in[:i])
		switch in[i+1] {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case '"', '\\', '/':
			out.WriteByte(in[i+1])
		default:
			return "", false
		}
		in = in[i+2:]
	}
}

func (d *decoder) message() *Message {
	m := &Message{Role: Role(d.string()), Format: Format(d.string()), Digest: d.digest()}
	if d.body != nil {
		m.Raw = d.body
	}
	if n := d.count(9); n > 0 {
		m.Blocks = make([]Block, n)
	}
	for i := range m.Blocks {
		d.block(&m.Blocks[i])
	}
	return m
}

func (d *decoder) block(b *Block) {
	b.Kind = Kind(d.byte())
	flags := d.byte()
	b.Error, b.CacheMark, b.Own = flags&flagError != 0, flags&flagCacheMark != 0, flags&flagOwn != 0
	b.Start, b.End, b.Tokens = d.int(), d.int(), d.int()
	if b.Start < 0 || b.End < b.Start || b.End > len(d.body) {
		d.fail("a block outside its message")
		return
	}
	b.ID, b.Name = d.string(), d.string()
	b.Text = d.text()
	if args := d.text(); args != "" {
		b.Args = json.RawMessage(args)
	}
	if flags&flagSignature != 0 {
		b.Signature = d.int()
	}
	if flags&flagMedia != 0 {
		b.Media = make([]Media, d.count(37))
		for i := range b.Media {
			d.media(&b.Media[i])
		}
	}
}

func (d *decoder) media(m *Media) {
	m.Kind = Kind(d.byte())
	m.Type = d.string()
	m.Bytes, m.Width, m.Height = d.int(), d.int(), d.int()
	m.Digest = d.digest()
}

// text gives a text back. One that stands in the body as it is shares its
// memory with it, which nobody changes.
func (d *decoder) text() string {
	kind := d.byte()
	switch kind {
	case textNone:
		return ""
	case textInline:
		return d.string()
	}
	from, n := d.uint(), d.uint()
	if from > uint64(len(d.body)) || n > uint64(len(d.body))-from {
		d.fail("a text outside its message")
		return ""
	}
	literal := d.body[from : from+n]
	if kind == textPlain {
		return unsafe.String(unsafe.SliceData(literal), len(literal))
	}
	s, err := literalText(literal)
	if kind != textEscaped || err != nil {
		d.fail("a text that is no string")
	}
	return s
}
