package recall

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// segment is one, or what its head says of it.
type segment struct {
	after, to furl.Seq
	docs      int
	length    uint64 // of all documents
	newest    int64  // time of the newest document, milliseconds
	calls     calls  // that wait for their result after record to
	level     uint8
	lens      []byte // the documents' lengths, one uvarint each
	// packed is set if the parts below are in the page of the head.
	packed  bool
	table   []byte // the documents
	terms   []byte // a table of all terms
	lexicon []byte // the vocabulary
}

const (
	packedBytes = 4 << 10 // a segment up to this is one page
	bucketBytes = 1 << 10 // what a bucket of terms should not exceed, if there can be more of them
)

// pages cuts a segment into pages.
func (s *segment) pages(key furl.SessionKey) ([]furl.IndexPage, error) {
	s.packed = len(s.table)+len(s.terms)+len(s.lexicon) <= packedBytes
	s.level = 0
	for !s.packed && s.level < maxLevel && len(s.terms)>>(2*s.level) > bucketBytes {
		s.level++
	}
	h := binary.AppendUvarint(nil, uint64(s.after))
	h = binary.AppendUvarint(h, uint64(s.docs))
	h = binary.AppendUvarint(h, s.length)
	h = binary.AppendVarint(h, s.newest)
	h = s.calls.append(h)
	h = append(h, s.level<<1|boolByte(s.packed))
	h = appendBytes(h, s.lens)
	if s.packed {
		for _, part := range [][]byte{s.table, s.terms, s.lexicon} {
			h = appendBytes(h, part)
		}
		return []furl.IndexPage{seal(key, bucketHead, s.to, h)}, nil
	}
	sigs, err := signaturesOf(s.lexicon)
	if err != nil {
		return nil, err
	}
	pages := []furl.IndexPage{
		seal(key, bucketHead, s.to, h),
		seal(key, bucketDocs, s.to, s.table),
		seal(key, bucketVocabulary, s.to, s.lexicon),
	}
	for i, sig := range sigs {
		pages = append(pages, seal(key, bucketSignature+uint32(i), s.to, sig))
	}
	return s.termPages(key, pages)
}

// termPages spreads the terms over buckets. Each bucket has a page, an empty
// one too: a page that is not there tells a reader that the segment is gone.
func (s *segment) termPages(key furl.SessionKey, pages []furl.IndexPage) ([]furl.IndexPage, error) {
	bucket := levelStart(s.level)
	w := termWriter{level: s.level}
	var payload []byte
	end := func() {
		payload = w.take(payload[:0])
		pages = append(pages, seal(key, bucket, s.to, payload))
		bucket++
	}
	e := readSegment(s, 0)
	for e.next() {
		for bucket < termBucket(s.level, e.hash) {
			end()
		}
		w.add(e.hash, e.list.buf)
	}
	for bucket < levelStart(s.level+1) {
		end()
	}
	return pages, e.err
}

// readHead reads the head of a segment. It refers to payload.
func readHead(payload []byte, number uint64) (*segment, error) {
	r := reader{buf: payload}
	h := &segment{after: furl.Seq(r.uint()), to: furl.Seq(number)}
	docs := r.uint()
	h.length = r.uint()
	h.newest = r.int()
	h.calls = readCalls(&r)
	flags := r.byte()
	h.level, h.packed = flags>>1, flags&1 != 0
	h.lens = r.bytes()
	if h.packed {
		h.table, h.terms, h.lexicon = r.bytes(), r.bytes(), r.bytes()
	}
	if h.after >= h.to || docs > uint64(len(h.lens)) || h.level > maxLevel || h.length > 1<<48 {
		return nil, fmt.Errorf("%w: head of segment %d", errDamaged, number)
	}
	h.docs = int(docs)
	return h, r.end("head")
}

// lengths gives the lengths of the documents.
func (h *segment) lengths(dst []uint32) ([]uint32, error) {
	sum, at := uint64(0), 0
	for range h.docs {
		n, size := uint64(0), 1
		if at < len(h.lens) && h.lens[at] < 0x80 {
			n = uint64(h.lens[at])
		} else if n, size = binary.Uvarint(h.lens[at:]); size <= 0 {
			return dst, fmt.Errorf("%w: lengths", errDamaged)
		}
		at += size
		sum += n
		dst = append(dst, uint32(n))
	}
	if sum != h.length || at != len(h.lens) {
		return dst, fmt.Errorf("%w: lengths", errDamaged)
	}
	return dst, nil
}

// segment makes a segment of a batch.
func (b *batch) segment() *segment {
	x := &b.index
	s := &segment{after: b.after, to: b.to, docs: len(x.docs), length: x.total, calls: b.calls}
	for _, n := range x.lens {
		s.lens = binary.AppendUvarint(s.lens, uint64(n))
	}
	for i := range b.docs {
		s.newest = max(s.newest, b.docs[i].at)
	}
	s.table = appendDocs(nil, b.docs)

	type term struct {
		hash termHash
		id   uint32
	}
	terms := make([]term, 0, len(x.lists))
	words := make([]vocable, 0, len(x.lists))
	for text, id := range x.words {
		terms = append(terms, term{hashOf(text, false), id})
		if x.piece[id] {
			words = append(words, vocable{text, false})
		}
	}
	for run, n := range x.runs {
		if m := x.made[n]; m.name {
			terms = append(terms, term{hashOf(run, true), x.termOf[m.from]})
			words = append(words, vocable{run, true})
		}
	}
	slices.SortFunc(terms, func(a, b term) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id)) })
	var m termMerge
	for _, t := range terms {
		l := &x.lists[t.id]
		m.add(t.hash, chunk{docs: l.docs, buf: l.buf})
	}
	s.terms = m.end()
	slices.SortFunc(words, vocable.compare)
	var lex lexicon
	for _, w := range words {
		lex.add(w)
	}
	s.lexicon = lex.buf
	return s
}

// join makes one segment of several that follow one another.
func join(parts []*segment) (*segment, error) {
	first, last := parts[0], parts[len(parts)-1]
	s := &segment{after: first.after, to: last.to, calls: last.calls}
	var docs []document
	streams := make([]entries, len(parts))
	lexicons := make([]lexiconReader, len(parts))
	for i, p := range parts {
		if i > 0 && p.after != parts[i-1].to {
			return nil, fmt.Errorf("%w: segment %d does not follow", errDamaged, p.to)
		}
		d, err := readDocs(p.table, p.docs)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d...)
		streams[i] = readSegment(p, uint32(s.docs))
		lexicons[i] = lexiconReader{buf: p.lexicon}
		s.docs += p.docs
		s.length += p.length
		s.newest = max(s.newest, p.newest)
		s.lens = append(s.lens, p.lens...)
	}
	s.table = appendDocs(nil, docs)
	var err error
	if s.terms, err = joinTerms(streams); err != nil {
		return nil, err
	}
	s.lexicon, err = joinLexicons(lexicons)
	return s, err
}
