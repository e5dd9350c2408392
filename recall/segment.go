package recall

import (
	"encoding/binary"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// segment is the index of the records of one session after record after, up to
// record to, which is also its number. Read from pages, it may have its head only.
type segment struct {
	// The head.
	after, to furl.Seq
	docs      int
	length    uint64       // of all documents, in tokens
	newest    int64        // time of the newest document, in milliseconds
	calls     pendingCalls // at record to
	asked     bool         // the last document is a text that asks something
	level     uint8        // the terms have 4^level buckets
	packed    bool         // the parts are in the page of the head
	lengths   []byte       // of the documents, each a docLength as uvarint
	head      []byte       // the payload of the head's page

	// The parts. isRead says that they are known without reading their pages.
	isRead     bool
	documents  []byte // see encodeDocuments
	terms      []byte // a dictionary of all terms
	vocabulary []byte
}

const (
	maxPackedBytes = 4 << 10 // parts up to this size are in the page of the head
	maxBucketBytes = 1 << 10 // of terms, as long as the level can be higher
)

// encode returns the pages of the segment.
func (s *segment) encode(key furl.SessionKey) ([]storage.IndexPage, error) {
	s.packed = len(s.documents)+len(s.terms)+len(s.vocabulary) <= maxPackedBytes
	s.level = 0
	for !s.packed && s.level < maxLevel && len(s.terms)>>(2*s.level) > maxBucketBytes {
		s.level++
	}
	s.head = s.encodeHead()
	head := newPage(key, bucketHead, s.to, s.head)
	if s.packed {
		return []storage.IndexPage{head}, nil
	}
	pages := []storage.IndexPage{
		head,
		newPage(key, bucketDocuments, s.to, s.documents),
		newPage(key, bucketVocabulary, s.to, s.vocabulary),
	}
	filters, err := newGramFilters(s.vocabulary)
	if err != nil {
		return nil, err
	}
	for i, filter := range filters {
		pages = append(pages, newPage(key, firstGramBucket+uint32(i), s.to, filter))
	}
	return s.appendTermPages(key, pages)
}

func (s *segment) encodeHead() []byte {
	h := binary.AppendUvarint(nil, uint64(s.after))
	h = binary.AppendUvarint(h, uint64(s.docs))
	h = binary.AppendUvarint(h, s.length)
	h = binary.AppendVarint(h, s.newest)
	h = s.calls.encode(h)
	h = append(h, s.level<<2|boolByte(s.asked)<<1|boolByte(s.packed))
	h = appendBytes(h, s.lengths)
	if s.packed {
		for _, part := range [][]byte{s.documents, s.terms, s.vocabulary} {
			h = appendBytes(h, part)
		}
	}
	return h
}

// appendTermPages distributes the terms over buckets. An empty bucket has a page
// too: a missing page tells a reader that the segment was dropped.
func (s *segment) appendTermPages(key furl.SessionKey, pages []storage.IndexPage) ([]storage.IndexPage, error) {
	bucket := firstTermBucket(s.level)
	w := termWriter{level: s.level}
	var payload []byte
	endBucket := func() {
		payload = w.flush(payload[:0])
		pages = append(pages, newPage(key, bucket, s.to, payload))
		bucket++
	}
	t := segmentTerms(s, 0)
	for t.next() {
		for bucket < termBucket(s.level, t.hash) {
			endBucket()
		}
		w.add(t.hash, t.list.buf)
	}
	for bucket < firstTermBucket(s.level+1) {
		endBucket()
	}
	return pages, t.err
}

// decodeHead reads the head of segment to, and the parts of a packed segment. It
// refers to payload.
func decodeHead(payload []byte, to uint64) (*segment, error) {
	r := payloadReader{buf: payload}
	s := &segment{after: furl.Seq(r.uint()), to: furl.Seq(to), head: payload}
	docs := r.uint()
	s.length = r.uint()
	s.newest = r.int()
	s.calls = decodePendingCalls(&r)
	flags := r.byte()
	s.level, s.asked, s.packed = flags>>2, flags&2 != 0, flags&1 != 0
	s.lengths = r.bytes()
	if s.packed {
		s.documents, s.terms, s.vocabulary, s.isRead = r.bytes(), r.bytes(), r.bytes(), true
	}
	if s.after >= s.to || docs > uint64(len(s.lengths)) || s.level > maxLevel || s.length > 1<<48 {
		return nil, fmt.Errorf("%w: head of segment %d", errDamaged, to)
	}
	s.docs = int(docs)
	return s, r.end("head")
}

// appendLengths appends the lengths of the documents to dst.
func (s *segment) appendLengths(dst []docLength) ([]docLength, error) {
	sum, at := uint64(0), 0
	for range s.docs {
		n, size := uint64(0), 1
		if at < len(s.lengths) && s.lengths[at] < 0x80 {
			n = uint64(s.lengths[at])
		} else if n, size = binary.Uvarint(s.lengths[at:]); size <= 0 {
			return dst, fmt.Errorf("%w: lengths", errDamaged)
		}
		at += size
		sum += n >> 1
		dst = append(dst, docLength(n))
	}
	if sum != s.length || at != len(s.lengths) {
		return dst, fmt.Errorf("%w: lengths", errDamaged)
	}
	return dst, nil
}

// mergeSegments makes one segment of several that follow one another.
func mergeSegments(segments []*segment) (*segment, error) {
	first, last := segments[0], segments[len(segments)-1]
	merged := &segment{after: first.after, to: last.to, calls: last.calls, asked: last.asked, isRead: true}
	var docs []document
	terms := make([]termReader, len(segments))
	vocabularies := make([]vocabularyReader, len(segments))
	for i, s := range segments {
		if i > 0 && s.after != segments[i-1].to {
			return nil, fmt.Errorf("%w: segment %d does not follow segment %d", errDamaged, s.to, segments[i-1].to)
		}
		d, err := decodeDocuments(s.documents, s.docs)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d...)
		terms[i] = segmentTerms(s, uint32(merged.docs))
		vocabularies[i] = vocabularyReader{buf: s.vocabulary}
		merged.docs += s.docs
		merged.length += s.length
		merged.newest = max(merged.newest, s.newest)
		merged.lengths = append(merged.lengths, s.lengths...)
	}
	merged.documents = encodeDocuments(nil, docs)
	var err error
	if merged.terms, err = mergeTerms(terms); err != nil {
		return nil, err
	}
	merged.vocabulary, err = mergeVocabularies(vocabularies)
	return merged, err
}
