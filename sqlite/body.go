package sqlite

import (
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
)

// Encodings of stored bytes.
const (
	codecPlain = 0
	codecS2    = 1
	codecZstd  = 2
	// codecSealed is encrypted bytes, whose digest in bodies is a keyed one.
	codecSealed = 3
)

const (
	// zstdFrom is the size from which a body is compressed with zstd. It
	// takes 50% longer than S2 to write and three times as long to read, and
	// makes large texts 20% smaller. Most reads are of small texts.
	zstdFrom = 4 << 10
	// inlineTo is the largest encoded size of a body that is stored in its
	// record, so that one row of it fits into a page of 4 KB. An append then
	// writes half as many pages, and a store whose sessions share no messages
	// does not grow by it.
	inlineTo = 3 << 10
	// maxBody bounds the size that a damaged record can claim.
	maxBody = 2 << 30
)

// The coders are used concurrently, through EncodeAll and DecodeAll only.
var (
	zstdWriter = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false)))
	zstdReader = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(0)))
)

// must is for constructors that fail only on invalid options.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack encodes a body for storage: compressed if that saves an eighth.
func pack(body []byte) (codec int, packed []byte) {
	if len(body) < 64 {
		return codecPlain, body
	}
	if len(body) < zstdFrom {
		codec, packed = codecS2, s2.Encode(nil, body)
	} else {
		codec, packed = codecZstd, zstdWriter.EncodeAll(body, nil)
	}
	if len(packed) > len(body)-len(body)/8 {
		return codecPlain, body
	}
	return codec, packed
}

// unpack decodes a body. The caller may reuse packed afterwards.
func unpack(codec, size int64, packed []byte) ([]byte, error) {
	if size < 0 || size > maxBody {
		return nil, fmt.Errorf("%w: invalid body size %d", furl.ErrDamaged, size)
	}
	var body []byte
	var err error
	switch codec {
	case codecPlain, codecSealed:
		body = append(make([]byte, 0, len(packed)), packed...)
	case codecS2:
		var n int
		if n, err = s2.DecodedLen(packed); err == nil && int64(n) == size {
			body, err = s2.Decode(make([]byte, n), packed)
		}
	case codecZstd:
		// A damaged size must not allocate memory that the bytes cannot fill.
		body, err = zstdReader.DecodeAll(packed, make([]byte, 0, min(size, int64(len(packed))*64)))
	default:
		err = fmt.Errorf("unknown codec %d", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: decode body: %w", furl.ErrDamaged, err)
	}
	if int64(len(body)) != size {
		return nil, fmt.Errorf("%w: a body has %d bytes, expected %d", furl.ErrDamaged, len(body), size)
	}
	return body, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf returns the checksum of a record.
func sumOf(head, body []byte) int64 {
	return int64(crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body))
}
