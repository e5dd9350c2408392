package recall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/furlhq/furl"
)

// The pages of a segment. A segment speaks of the records of one session
// between two numbers, and is numbered as the last of them. Its parts are
//
//   - the head: which records, how many documents and how long each is;
//   - the documents: where each is and what it is, for filters;
//   - the terms, by the leading bits of their hashes over 1, 4, 16, 64 or 256
//     buckets, each with the documents it stands in;
//   - the vocabulary: the texts of the terms, to look inside them;
//   - the signatures: which four letters in a row are in the vocabulary.
//
// A small segment has all but the signatures in one page, that of the head.
const (
	bucketHead uint32 = iota
	bucketDocs
	bucketVocabulary
	bucketSignature // the first of them
	bucketTerms     = 16
)

// maxLevel is the number of times the terms can be spread over four times as
// many buckets.
const maxLevel = 4

// termBucket is the bucket of a term in a segment of a level: all levels have
// their own, so that a search for a term in all sessions reads one bucket for
// each level.
func termBucket(level uint8, h termHash) uint32 {
	return levelStart(level) + uint32(h>>(hashBits-2*uint(level)))
}

func levelStart(level uint8) uint32 { return bucketTerms + (1<<(2*level)-1)/3 }

// pageVersion is the first byte of each page. A page of another version is
// rebuilt from the records. Version 1 had the terms one after the other.
const pageVersion = 2

const pageHeader = 5

// errDamaged says that a page is not what was written; errVersion, that it is
// one of another version, which is no news to anybody.
var (
	errDamaged = errors.New("damaged index page")
	errVersion = fmt.Errorf("%w: of another version", errDamaged)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal makes a page of what it is to hold. Its checksum covers where it
// belongs too.
func seal(key furl.SessionKey, bucket uint32, segment furl.Seq, payload []byte) furl.IndexPage {
	data := make([]byte, pageHeader, pageHeader+len(payload))
	data = append(data, payload...)
	data[0] = pageVersion
	binary.LittleEndian.PutUint32(data[1:], checksum(key.Session, bucket, uint64(segment), payload))
	return furl.IndexPage{Session: key.Session, Bucket: bucket, Segment: uint64(segment), Data: data}
}

// unseal gives what a page holds. It is p.Data's.
func unseal(p *furl.IndexPage) ([]byte, error) {
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

// termHash stands for a term in the pages.
type termHash uint64

const hashBits = 40

// hashOf gives the hash of a term: FNV-1a, mixed so that the leading bits are
// as good as the others. Two terms of a store with the same are very rare, and
// are then one.
func hashOf(text string, name bool) termHash {
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

// reader takes a payload apart. After the first thing that is not there, all
// that follows is zero and ok is false.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

// count reads how many things follow, each of at least one byte.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.buf)) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a length and that many bytes.
func (r *reader) bytes() []byte {
	n := r.count()
	b := r.buf[:n:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) byte() byte {
	if len(r.buf) == 0 {
		r.fail()
		return 0
	}
	b := r.buf[0]
	r.buf = r.buf[1:]
	return b
}

func (r *reader) fail() { r.buf, r.bad = nil, true }

// end reports, once all was read, what is wrong.
func (r *reader) end(what string) error {
	if r.bad || len(r.buf) > 0 {
		return fmt.Errorf("%w: %s", errDamaged, what)
	}
	return nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
