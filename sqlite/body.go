package sqlite

import (
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
)

// How bytes are kept.
const (
	codecPlain = 0
	codecS2    = 1
	codecZstd  = 2
)

const (
	// zstdFrom is the size from which a body is worth zstd's time: it takes
	// half as long again as s2 to write and thrice as long to read, and makes
	// large texts a fifth smaller. Small ones are most of what is read.
	zstdFrom = 4 << 10
	// inlineTo is the size up to which a body, as it is kept, stands in its
	// record: an append then touches half as many pages, and a store without
	// sessions that share messages is no larger for it.
	inlineTo = 1 << 10
	// maxBody bounds what a damaged size can ask for.
	maxBody = 2 << 30
)

// The coders are used by many goroutines at once through EncodeAll and
// DecodeAll alone.
var (
	zstdWriter = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false)))
	zstdReader = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(0)))
)

// must is for constructors that fail on wrong options only.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack gives the bytes by which a body is kept: compressed if that saves an
// eighth.
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

// unpack gives the body back. Packed may be used again afterwards.
func unpack(codec, size int64, packed []byte) ([]byte, error) {
	if size < 0 || size > maxBody {
		return nil, fmt.Errorf("%w: a body of %d bytes", furl.ErrDamaged, size)
	}
	var body []byte
	var err error
	switch codec {
	case codecPlain:
		body = append(make([]byte, 0, len(packed)), packed...)
	case codecS2:
		var n int
		if n, err = s2.DecodedLen(packed); err == nil && int64(n) == size {
			body, err = s2.Decode(make([]byte, n), packed)
		}
	case codecZstd:
		// A damaged size must not ask for memory the bytes cannot fill.
		body, err = zstdReader.DecodeAll(packed, make([]byte, 0, min(size, int64(len(packed))*64)))
	default:
		err = fmt.Errorf("codec %d", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a body: %w", furl.ErrDamaged, err)
	}
	if int64(len(body)) != size {
		return nil, fmt.Errorf("%w: a body of %d bytes where %d were written", furl.ErrDamaged, len(body), size)
	}
	return body, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the checksum of a record.
func sumOf(head, body []byte) int64 {
	return int64(crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body))
}
