package recall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// The pages of a segment, by their bucket:
//
//   - the head: which records, how many documents, the length of each;
//   - the documents: their stored fields, for filters;
//   - the vocabulary: the texts of the terms, to search inside them;
//   - the gram filters of the vocabulary;
//   - the terms with their posting lists, by the leading bits of their hashes in
//     1, 4, 16, 64 or 256 buckets.
//
// A small segment is one page: the head with all parts except the gram filters.
const (
	bucketHead uint32 = iota
	bucketDocuments
	bucketVocabulary
	firstGramBucket
	bucketTerms = 16
)

// maxLevel is the highest level of a segment: 4^level is the number of buckets of
// its terms.
const maxLevel = 4

// termBucket returns the bucket of a term in a segment of a level. Levels do not
// share buckets, so a search for a term in all sessions reads one bucket per
// level.
func termBucket(level uint8, h termHash) uint32 {
	return firstTermBucket(level) + uint32(h>>(hashBits-2*uint(level)))
}

func firstTermBucket(level uint8) uint32 { return bucketTerms + (1<<(2*level)-1)/3 }

// pageVersion is the first byte of each page. Pages of another version are
// rebuilt from the records. In version 1 terms had no table; in version 2 terms were
// not normalized, and lengths did not tell which documents are answers.
const pageVersion = 3

// pageHeader is the size of the version and the checksum, in bytes.
const pageHeader = 5

// errDamaged says that a page has other bytes than were written; errVersion,
// which wraps it, that it has another version.
var (
	errDamaged = errors.New("damaged index page")
	errVersion = fmt.Errorf("%w: of another version", errDamaged)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newPage returns a page. Its checksum covers its place too.
func newPage(key furl.SessionKey, bucket uint32, segment furl.Seq, payload []byte) storage.IndexPage {
	data := make([]byte, pageHeader, pageHeader+len(payload))
	data = append(data, payload...)
	data[0] = pageVersion
	binary.LittleEndian.PutUint32(data[1:], checksum(key.Session, bucket, uint64(segment), payload))
	return storage.IndexPage{Session: key.Session, Bucket: bucket, Segment: uint64(segment), Data: data}
}

// pagePayload checks a page and returns its payload, which refers to p.Data.
func pagePayload(p *storage.IndexPage) ([]byte, error) {
	if len(p.Data) < pageHeader {
		return nil, fmt.Errorf("%w: %d bytes", errDamaged, len(p.Data))
	}
	if p.Data[0] != pageVersion {
		return nil, errVersion
	}
	payload := p.Data[pageHeader:]
	if binary.LittleEndian.Uint32(p.Data[1:]) != checksum(p.Session, p.Bucket, p.Segment, payload) {
		return nil, fmt.Errorf("%w: segment %d, bucket %d: wrong checksum", errDamaged, p.Segment, p.Bucket)
	}
	return payload, nil
}

func checksum(session furl.SessionID, bucket uint32, segment uint64, payload []byte) uint32 {
	var place [12]byte
	binary.LittleEndian.PutUint32(place[:], bucket)
	binary.LittleEndian.PutUint64(place[4:], segment)
	sum := crc32.Update(crc32.Checksum([]byte(session), castagnoli), castagnoli, place[:])
	return crc32.Update(sum, castagnoli, payload)
}

// termHash identifies a term in pages. Terms with the same hash are treated as
// one; they are very rare.
type termHash uint64

const hashBits = 40

// hashTerm returns the hash of a term: FNV-1a, mixed so that the leading bits
// are as good as the others.
func hashTerm(text string, name bool) termHash {
	h := uint64(14695981039346656037)
	if name {
		h ^= 1
	}
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return termHash(h >> (64 - hashBits))
}

// payloadReader reads the fields of a payload. After the first field that is
// missing, bad is set and all fields are zero.
type payloadReader struct {
	buf []byte
	bad bool
}

func (r *payloadReader) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *payloadReader) int() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

// count reads the number of elements that follow, each of at least one byte.
func (r *payloadReader) count() int {
	n := r.uint()
	if n > uint64(len(r.buf)) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a length and that many bytes.
func (r *payloadReader) bytes() []byte {
	n := r.count()
	b := r.buf[:n:n]
	r.buf = r.buf[n:]
	return b
}

func (r *payloadReader) byte() byte {
	if len(r.buf) == 0 {
		r.fail()
		return 0
	}
	b := r.buf[0]
	r.buf = r.buf[1:]
	return b
}

func (r *payloadReader) fail() { r.buf, r.bad = nil, true }

// end returns an error if a field was missing or bytes are left.
func (r *payloadReader) end(what string) error {
	if r.bad || len(r.buf) > 0 {
		return fmt.Errorf("%w: %s", errDamaged, what)
	}
	return nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
