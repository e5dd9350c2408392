package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	utf8BOM   = []byte{0xef, 0xbb, 0xbf}
)

// maxZstdWindow is the memory a zstd frame may ask for; what its own tool
// allows by default.
const maxZstdWindow = 128 << 20

// unpack reads all of r, unpacked if it is compressed. Of a compressed file
// that breaks off it gives what came before, and the fault as torn.
func unpack(name string, r io.Reader, limit int64) (data []byte, torn, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	packed := true
	src := io.Reader(br)
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, err
		}
		src = z
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, nil, err
		}
		defer z.Close()
		src = z
	default:
		packed = false
	}
	data, err = io.ReadAll(io.LimitReader(src, limit+1))
	if int64(len(data)) > limit {
		return nil, nil, &TooLargeError{name, limit}
	}
	if err != nil {
		if !packed || len(data) == 0 {
			return nil, nil, err
		}
		torn = err
	}
	return bytes.TrimPrefix(data, utf8BOM), torn, nil
}
