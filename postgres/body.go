package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
)

// maxBody is the largest body in bytes, uncompressed. PostgreSQL limits the
// parameters of one statement to 1 GB.
const maxBody = 256 << 20

// The first byte of a packed body names the encoding of the rest.
const (
	packNone = iota
	packZstd // RFC 8878
	packS2   // the block format of Snappy, extended
	packSeal // encrypted bytes
)

// packSealed returns the packed form of encrypted bytes.
func packSealed(data []byte) []byte { return append([]byte{packSeal}, data...) }

// zstdFrom is the size, in bytes, from which a body is compressed with zstd.
// Smaller bodies, which are most of all reads, use S2, which decodes several
// times faster.
const zstdFrom = 4 << 10

// smallBody is the size, in bytes, up to which a body is stored with each
// record: an index entry to find duplicates would cost more than it saves.
const smallBody = 256

var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		// Neither can fail with constant options. Without entropy coding of
		// all literals, base64 would not be compressed.
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithAllLitEntropyCompression(true),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBody))
		return d
	})
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// pack compresses a body if that makes it smaller. Equal bodies give equal
// bytes.
func pack(body []byte) []byte {
	if body == nil {
		return nil
	}
	switch {
	case len(body) < 64:
	case len(body) < zstdFrom:
		out := make([]byte, 1+s2.MaxEncodedLen(len(body)))
		out[0] = packS2
		if n := len(s2.Encode(out[1:], body)); 1+n <= len(body)-len(body)/8 {
			return out[:1+n]
		}
	default:
		out := make([]byte, 1, 64+len(body)/2)
		out[0] = packZstd
		if out = encoder().EncodeAll(body, out); len(out) <= len(body) {
			return out
		}
	}
	return append([]byte{packNone}, body...)
}

// unpack decodes a body of size bytes into new memory.
func unpack(packed []byte, size int) ([]byte, error) {
	if len(packed) == 0 || size < 0 || size > maxBody {
		return nil, errors.New("empty body")
	}
	var body []byte
	switch packed[0] {
	case packSeal: // size is that of the message inside
		return append(make([]byte, 0, len(packed)-1), packed[1:]...), nil
	case packNone:
		body = append(make([]byte, 0, size), packed[1:]...)
	case packZstd:
		var err error
		if body, err = decoder().DecodeAll(packed[1:], make([]byte, 0, size)); err != nil {
			return nil, fmt.Errorf("decode body: %w", err)
		}
	case packS2:
		n, err := s2.DecodedLen(packed[1:])
		if err == nil && n == size {
			body, err = s2.Decode(make([]byte, n), packed[1:])
		}
		if err != nil {
			return nil, fmt.Errorf("decode body: %w", err)
		}
	default:
		return nil, fmt.Errorf("unknown body encoding %d", packed[0])
	}
	if len(body) != size {
		return nil, fmt.Errorf("the body has %d bytes, expected %d", len(body), size)
	}
	return body, nil
}

// checksum is stored with a record and verified when it is read.
func checksum(head, body []byte) int32 {
	return int32(crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body))
}

// printOf is a short digest for indexes. The bodies that it finds must be
// compared. It is never 0, which means none.
func printOf(b []byte) int64 {
	d := furl.DigestOf(b)
	return int64(binary.LittleEndian.Uint64(d[:8]) | 1)
}
