package record

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
)

// newestVersion is the newest version of the binary format. A record begins
// with the version that it needs; docs/internals/format.md describes them.
const newestVersion = 6

// ErrNewerFormat means that a newer version of furl wrote a record, or the store
// that has it. It is left unchanged.
var ErrNewerFormat = errors.New("the store was written by a newer version of furl")

// Encode returns the bytes that a store keeps for a record: the head, and the
// body. The body is a message's bytes on the wire or the encrypted bytes of a
// sealed record, nil for everything else.
// Bodies repeat between sessions that share their beginning, so a store may
// keep each once, by its content. The same record gives the same bytes.
func Encode(r furl.Record) (head, body []byte, err error) {
	kind := indexOf(r.Body)
	if kind < 0 {
		return nil, nil, fmt.Errorf("encode record %d: unknown body %T", r.Seq, r.Body)
	}
	e := encoding{mode: writeBinary, version: versionOf(r.Body, kind)}
	e.binaryWriter.out = append(make([]byte, 0, 256), e.version)
	switch b := r.Body.(type) {
	case *furl.Message:
		e.binaryWriter.raw, body = b.Raw, b.Raw
	case *furl.Sealed:
		body = b.Data
	}
	describe(&e, &r)
	return e.binaryWriter.out, body, nil
}

// Decode returns the record that Encode was given. It keeps body, which must
// not be changed afterwards, and nothing of head. Bytes that Encode cannot have
// written are an error wrapping furl.ErrDamaged, those of a newer version one
// wrapping ErrNewerFormat.
func Decode(head, body []byte) (r furl.Record, err error) {
	e := encoding{mode: readBinary, binaryReader: binaryReader{in: head, body: body}}
	d := &e.binaryReader
	e.version = d.byte()
	if e.version > newestVersion {
		return r, fmt.Errorf("decode a record of version %d: %w", e.version, ErrNewerFormat)
	}
	describe(&e, &r)
	if e.version == 0 {
		d.fail("version 0")
	}
	if d.left() > 0 {
		d.fail("more bytes than a record has")
	}
	if d.err != nil {
		return furl.Record{}, fmt.Errorf("decode record %d: %w: %w", r.Seq, furl.ErrDamaged, d.err)
	}
	return r, nil
}

// Chain returns the chain of an encoded message without decoding the rest;
// false if the head is of another kind of record, or damaged.
func Chain(head []byte) (chain furl.Digest, ok bool) {
	d := binaryReader{in: head}
	var r furl.Record
	d.byte()
	d.seq("", &r.Seq)
	d.seq("", &r.Parent)
	d.time("", &r.At)
	d.byte()
	if kind := d.byte(); kind != 'm' && kind != 's' {
		return chain, false
	}
	d.digest("", &chain)
	return chain, d.err == nil
}

// MessageSize returns the size in bytes of a message on the wire, encrypted or
// not; false for other records.
func MessageSize(r *furl.Record) (size int, ok bool) {
	switch b := r.Body.(type) {
	case *furl.Message:
		return b.Bytes(), true
	case *furl.Sealed:
		return b.Size, b.Message
	}
	return 0, false
}
