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
	// sqliteMagic is the start of a SQLite database.
	sqliteMagic = []byte("SQLite format 3\x00")
	utf8BOM     = []byte{0xef, 0xbb, 0xbf}
)

// maxZstdWindow is the memory that a zstd frame may require: the default
// limit of the zstd tool.
const maxZstdWindow = 128 << 20

// unpack reads all of r and decompresses it if needed. For a truncated
// compressed file it returns the readable part, and the error as torn.
//
// If r can be read twice, its size is determined first. A large file is then
// kept in memory once, not as the several copies of a growing buffer, and one
// that unpacks to more than the limit is not read at all.
func unpack(name string, r io.Reader, limit int64) (data []byte, torn, err error) {
	size := int64(-1)
	if again, ok := r.(io.Seeker); ok {
		if start, err := again.Seek(0, io.SeekCurrent); err == nil { // a pipe is not a file
			if size, err = measure(r, limit); err != nil {
				return nil, nil, err
			}
			if _, err := again.Seek(start, io.SeekStart); err != nil {
				return nil, nil, err
			}
		}
	}
	src, packed, err := unpacked(r)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	var buf bytes.Buffer
	if size >= 0 && size <= limit {
		// Allocated at once, with room to detect the end: Buffer.Grow
		// allocates twice if the compiler cannot inline it, as with the race
		// detector.
		buf = *bytes.NewBuffer(make([]byte, 0, int(size)+bytes.MinRead))
	}
	if size <= limit {
		_, err = buf.ReadFrom(io.LimitReader(src, limit+1))
	}
	data = buf.Bytes()
	if size > limit || int64(len(data)) > limit {
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

// measure returns the uncompressed size of r, at most one byte more than the
// limit. An error ends the count; the read that follows reports it.
func measure(r io.Reader, limit int64) (int64, error) {
	src, _, err := unpacked(r)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	n, _ := io.Copy(io.Discard, io.LimitReader(src, limit+1))
	return n, nil
}

// unpacked returns a reader of the uncompressed r; the first bytes tell the
// compression.
func unpacked(r io.Reader) (src io.ReadCloser, packed bool, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(br)
		return z, true, err
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, true, err
		}
		return z.IOReadCloser(), true, nil
	}
	return io.NopCloser(br), false, nil
}
