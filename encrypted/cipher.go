package encrypted

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
)

// keys are a tenant's keys, unwrapped.
type keys struct {
	tenant    furl.Tenant
	plain     bool // there may be data from before encryption
	destroyed time.Time
	chains    digester
	contents  digester
	hints     digester
	data      map[uint32]*dataKey
	active    *dataKey // for new writes
}

func (k *keys) setIndex(secret []byte) {
	k.chains, k.contents, k.hints = newDigester(secret, "chains"), newDigester(secret, "contents"), newDigester(secret, "hints")
}

// digester makes keyed digests.
type digester struct{ pool *sync.Pool }

func newDigester(secret []byte, label string) digester {
	key := derive(secret, label, "")
	return digester{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// of returns the keyed digest of some parts, which are not told apart.
func (d digester) of(parts ...[]byte) (out furl.Digest) {
	h := d.pool.Get().(hash.Hash)
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(out[:0])
	d.pool.Put(h)
	return out
}

// derive returns a key for a purpose.
func derive(secret []byte, label, of string) []byte {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "furl %s\x00%s", label, of)
	return h.Sum(nil)
}

// dataKey encrypts what a tenant writes. Each session has a key derived from it,
// so that no key is used so often that its nonces could repeat.
type dataKey struct {
	id     uint32
	secret []byte
	nonces digester

	mu       sync.RWMutex
	sessions map[furl.SessionID]cipher.AEAD
}

// maxSessionKeys is how many derived keys are kept.
const maxSessionKeys = 4096

func newDataKey(id uint32, secret []byte) *dataKey {
	return &dataKey{id: id, secret: secret, nonces: newDigester(secret, "nonces"), sessions: make(map[furl.SessionID]cipher.AEAD)}
}

// session returns the cipher of a session; "" is for what the tenant's sessions
// share.
func (d *dataKey) session(id furl.SessionID) cipher.AEAD {
	d.mu.RLock()
	aead := d.sessions[id]
	d.mu.RUnlock()
	if aead != nil {
		return aead
	}
	aead = newAEAD(derive(d.secret, "session", string(id)))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) >= maxSessionKeys {
		clear(d.sessions)
	}
	d.sessions[id] = aead
	return aead
}

// An envelope is the magic bytes, the number of the data key as a varint, the
// nonce, and what AES-256-GCM gives for a codec, the size before compression as a
// varint, and the compressed bytes.
const (
	magic     = "\xf5SE\x01" // not UTF-8
	nonceSize = 12
	tagSize   = 16
)

// sealedForm reports whether data is an envelope.
func sealedForm(data []byte) bool {
	return len(data) >= len(magic) && string(data[:len(magic)]) == magic
}

// place is where an envelope belongs: it opens nowhere else.
type place struct {
	kind    byte
	session furl.SessionID // "" for what a tenant's sessions share
	a, b    uint64         // the position within the session
	name    string
}

// The kinds of envelopes.
const (
	recordKind  = 'r' // a: number, b: parent
	metaKind    = 'm'
	contentKind = 'c' // name: id
	pageKind    = 'p' // a: bucket, b: segment
	vectorKind  = 'v' // name: model and id
)

// aad returns the associated data of a place.
func (k *keys) aad(out []byte, p place) []byte {
	out = append(out, p.kind)
	for _, s := range []string{string(k.tenant), string(p.session), p.name} {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	out = binary.AppendUvarint(out, p.a)
	return binary.AppendUvarint(out, p.b)
}

// scratch is memory that one call of seal or open uses.
type scratch struct{ plain, packed, aad []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is the size up to which memory is kept for the next call.
const maxScratch = 1 << 20

func (s *scratch) done() {
	if cap(s.plain)+cap(s.packed) > maxScratch {
		s.plain, s.packed = nil, nil
	}
	scratches.Put(s)
}

const (
	codecPlain = 0
	codecS2    = 1
	codecZstd  = 2

	// zstdFrom is the size from which bytes are compressed with zstd.
	zstdFrom = 4 << 10
	// maxPlain bounds the size that an envelope can claim.
	maxPlain = 2 << 30
)

var (
	zstdWriter = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false)))
	zstdReader = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPlain), zstd.WithDecoderConcurrency(0)))
)

// must is for constructors that fail only on invalid options.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// seal compresses and encrypts data for a place. Nonces are keyed digests of the
// data and its place, so that the same data gives the same bytes: a store then
// recognizes an append that is repeated.
func (k *keys) seal(p place, data []byte) []byte {
	s := scratches.Get().(*scratch)
	defer s.done()
	s.aad = k.aad(s.aad[:0], p)
	s.plain = append(s.plain[:0], codecPlain)
	s.plain = binary.AppendUvarint(s.plain, uint64(len(data)))
	head := len(s.plain)
	if len(data) >= 64 {
		if len(data) < zstdFrom {
			if n := s2.MaxEncodedLen(len(data)); cap(s.packed) < n {
				s.packed = make([]byte, n)
			}
			s.packed, s.plain[0] = s2.Encode(s.packed[:cap(s.packed)], data), codecS2
		} else {
			s.packed, s.plain[0] = zstdWriter.EncodeAll(data, s.packed[:0]), codecZstd
		}
		if len(s.packed) <= len(data)-len(data)/8 {
			s.plain = append(s.plain, s.packed...)
		} else {
			s.plain[0] = codecPlain
		}
	}
	if s.plain[0] == codecPlain {
		s.plain = append(s.plain[:head], data...)
	}
	d := k.active
	out := make([]byte, 0, len(magic)+binary.MaxVarintLen32+nonceSize+len(s.plain)+tagSize)
	out = append(out, magic...)
	out = binary.AppendUvarint(out, uint64(d.id))
	nonce := d.nonces.of(s.aad, s.plain)
	out = append(out, nonce[:nonceSize]...)
	return d.session(p.session).Seal(out, out[len(out)-nonceSize:], s.plain, s.aad)
}

// errForged is the error for an envelope that was changed or moved.
var errForged = errors.New("authentication failed: its bytes were changed, or belong to another place")

// open decrypts an envelope in its place into dst, whose contents are overwritten
// and which may be nil, or into new memory if that is too small.
func (k *keys) open(dst []byte, p place, data []byte) ([]byte, error) {
	if !k.destroyed.IsZero() {
		return nil, &KeyError{Tenant: k.tenant, Destroyed: k.destroyed}
	}
	if !sealedForm(data) {
		return nil, fmt.Errorf("%w: not in encrypted form", furl.ErrDamaged)
	}
	id, n := binary.Uvarint(data[len(magic):])
	at := len(magic) + n
	if n <= 0 || len(data) < at+nonceSize+tagSize {
		return nil, fmt.Errorf("%w: cut off", furl.ErrDamaged)
	}
	d := k.data[uint32(id)]
	if d == nil || id > 1<<32-1 {
		return nil, &KeyError{Tenant: k.tenant, Key: uint32(id)}
	}
	s := scratches.Get().(*scratch)
	defer s.done()
	s.aad = k.aad(s.aad[:0], p)
	nonce, text := data[at:at+nonceSize], data[at+nonceSize:]
	plain, err := d.session(p.session).Open(s.plain[:0], nonce, text, s.aad)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", furl.ErrDamaged, errForged)
	}
	s.plain = plain
	return unpack(dst[:0], plain)
}

// unpack decompresses what an envelope contains.
func unpack(dst, plain []byte) ([]byte, error) {
	bad := func(text string) ([]byte, error) { return nil, fmt.Errorf("%w: %s", furl.ErrDamaged, text) }
	if len(plain) < 2 {
		return bad("an empty envelope")
	}
	size, n := binary.Uvarint(plain[1:])
	if n <= 0 || size > maxPlain {
		return bad("an invalid size")
	}
	packed := plain[1+n:]
	var out []byte
	var err error
	switch plain[0] {
	case codecPlain:
		if out = append(dst, packed...); out == nil {
			out = []byte{}
		}
	case codecS2:
		if m, e := s2.DecodedLen(packed); e != nil || uint64(m) != size {
			return bad("an invalid size")
		}
		if uint64(cap(dst)) < size {
			dst = make([]byte, size)
		}
		out, err = s2.Decode(dst[:size], packed)
	case codecZstd:
		out, err = zstdReader.DecodeAll(packed, slices.Grow(dst, min(int(size), len(packed)*64)))
	default:
		return bad(fmt.Sprintf("unknown codec %d", plain[0]))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", furl.ErrDamaged, err)
	}
	if uint64(len(out)) != size {
		return bad(fmt.Sprintf("%d bytes, expected %d", len(out), size))
	}
	return out, nil
}

// isActive reports whether an envelope is encrypted with the key for new writes.
func (k *keys) isActive(data []byte) bool {
	id, n := binary.Uvarint(data[len(magic):])
	return n > 0 && id == uint64(k.active.id)
}
