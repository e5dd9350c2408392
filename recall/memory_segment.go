package recall

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// memorySegment indexes records that are added one by one: those after record
// after, up to record to. An Indexer turns it into a segment; a search uses it
// for records that are not in the pages yet.
type memorySegment struct {
	after, to furl.Seq
	index     Index
	docs      []document
	calls     pendingCalls
	asked     bool // the last document is a text that asks something
	bytes     int  // of text
}

// memorySegments are empty segments with the memory of earlier ones: most of an Indexer's
// allocations would be for maps and lists that are as large each time.
var memorySegments sync.Pool

// maxReused is the largest number of terms of a segment whose memory is used again.
const maxReused = 1 << 14

func takeMemorySegment() *memorySegment {
	if s, ok := memorySegments.Get().(*memorySegment); ok {
		return s
	}
	return &memorySegment{}
}

// giveBack lets other segments use the memory of s. Nothing may refer to s afterwards.
func (s *memorySegment) giveBack() {
	if len(s.index.postings) > maxReused || len(s.index.runs) > maxReused {
		return
	}
	clear(s.docs) // of strings
	*s = memorySegment{index: s.index, docs: s.docs[:0]}
	s.index.reset()
	memorySegments.Put(s)
}

// add indexes the next record.
func (s *memorySegment) add(r *furl.Record) {
	s.to = r.Seq
	m, ok := r.Body.(*furl.Message)
	if !ok {
		return
	}
	asked := s.asked // before this message
	for i := range m.Blocks {
		b := &m.Blocks[i]
		tool := ""
		switch b.Kind {
		case furl.KindCall:
			tool = b.Name
			s.calls.add(b.ID, tool)
		case furl.KindResult:
			tool = s.calls.remove(b.ID)
		}
		var texts []string
		for text := range b.Texts() {
			if text != "" {
				texts = append(texts, text)
				s.bytes += len(text)
			}
		}
		if len(texts) == 0 {
			continue
		}
		pos := furl.Pos{Msg: r.Seq, Block: i}
		isText := b.Kind == furl.KindText
		s.index.add(pos, isText && asked, texts)
		s.asked, asked = isText && asks(b.Text), false
		s.docs = append(s.docs, document{pos, millis(r.At), m.Role, b.Kind, tool, b.Error})
	}
}

// encode returns the segment in the form that pages have.
func (s *memorySegment) encode() *segment {
	x := &s.index
	seg := &segment{after: s.after, to: s.to, docs: len(x.positions), length: x.length, calls: s.calls, asked: s.asked, isRead: true}
	for _, n := range x.lengths {
		seg.lengths = binary.AppendUvarint(seg.lengths, uint64(n))
	}
	for i := range s.docs {
		seg.newest = max(seg.newest, s.docs[i].at)
	}
	seg.documents = encodeDocuments(nil, s.docs)

	type numbered struct {
		hash termHash
		id   uint32
	}
	hashes := make([]numbered, 0, len(x.postings))
	vocabulary := make([]term, 0, len(x.postings))
	for text, id := range x.terms {
		hashes = append(hashes, numbered{hashTerm(text, false), id})
		if x.infix[id] {
			vocabulary = append(vocabulary, term{text, false})
		}
	}
	for run, n := range x.runs {
		if a := x.analyzed[n]; a.name {
			hashes = append(hashes, numbered{hashTerm(run, true), x.runTerms[a.from]})
			vocabulary = append(vocabulary, term{run, true})
		}
	}
	slices.SortFunc(hashes, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id)) })
	var terms termMerger
	terms.out.grow(len(hashes), 2*len(hashes))
	for _, t := range hashes {
		terms.add(t.hash, x.postings[t.id].postings(0))
	}
	seg.terms = terms.finish()
	slices.SortFunc(vocabulary, term.compare)
	var w vocabularyWriter
	for _, t := range vocabulary {
		w.add(t)
	}
	seg.vocabulary = w.buf
	return seg
}

// asks reports whether a text ends with a question, or with a question and a short
// remark.
func asks(text string) bool {
	const remark = 25 // bytes
	text = text[max(0, len(text)-remark):]
	for i, r := range text {
		if r != '?' && r != '？' && r != '؟' {
			continue
		}
		next, n := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		if n == 0 || r != '?' || unicode.IsSpace(next) || strings.ContainsRune("\"'”’)!*_", next) {
			return true
		}
	}
	return false
}

// pendingCalls are the tool calls without a result so far, so that the tool of a
// result is known. They depend on the records alone, not on the segments.
type pendingCalls struct {
	calls []pendingCall
}

type pendingCall struct {
	id   uint64 // hash
	tool string
}

// maxPendingCalls limits the calls; the oldest are forgotten. Agents make a few
// at a time.
const maxPendingCalls = 64

func (c *pendingCalls) add(id, tool string) {
	if len(c.calls) == maxPendingCalls {
		c.calls = c.calls[:copy(c.calls, c.calls[1:])]
	}
	c.calls = append(c.calls, pendingCall{hashID(id), tool})
}

// remove returns the tool of the call that a result answers.
func (c *pendingCalls) remove(id string) string {
	h := hashID(id)
	for i := len(c.calls) - 1; i >= 0; i-- {
		if c.calls[i].id == h {
			tool := c.calls[i].tool
			c.calls = append(c.calls[:i], c.calls[i+1:]...)
			return tool
		}
	}
	return ""
}

func hashID(id string) uint64 { return uint64(hashTerm(id, false)) }

func (c *pendingCalls) encode(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.calls)))
	for _, call := range c.calls {
		dst = binary.AppendUvarint(dst, call.id)
		dst = appendBytes(dst, []byte(call.tool))
	}
	return dst
}

func decodePendingCalls(r *payloadReader) pendingCalls {
	var c pendingCalls
	for range r.count() {
		if call := (pendingCall{r.uint(), string(r.bytes())}); !r.bad && len(c.calls) < maxPendingCalls {
			c.calls = append(c.calls, call)
		}
	}
	return c
}
