package rebuild

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/furlhq/furl/internal/rawjson"
)

// Parts are the parts of a body. They share its memory.
type Parts struct {
	Frame         []byte // encoded, see frame
	System, Tools []byte // nil: the body has no such field
	Elements      [][]byte
	Sums          []uint64 // rawjson.Sum of the elements; nil: unknown
	Separator     []byte
	gaps          map[int][]byte // before an element, where it is not Separator
	sum           uint32         // of the body
}

// all returns the parts that are contents.
func (p *Parts) all() [3][]byte { return [3][]byte{p.Frame, p.System, p.Tools} }

// elementSums returns the hashes of the elements.
func (p *Parts) elementSums() []uint64 {
	if len(p.Sums) == len(p.Elements) {
		return p.Sums
	}
	sums := make([]uint64, len(p.Elements))
	for i, e := range p.Elements {
		sums[i] = rawjson.Sum(e)
	}
	return sums
}

// Names of the fields with instructions. A request has one of them at most.
var systemNames = []string{"system", "instructions"}

const toolsName = "tools"

// Hole is the kind of a hole in a frame.
const (
	holeSystem = 's'
	holeTools  = 't'
	holeList   = 'm'
)

type hole struct {
	kind byte
	rawjson.Span
}

// Cut cuts a body into parts, without credentials and names of users. It returns nil
// if the body is not a JSON object. list is the name of the field with the messages.
// elements are the positions of the messages if they are known; otherwise Cut
// looks for them. Separator is the usual one between elements if it is known.
func Cut(body []byte, list string, elements []rawjson.Span, separator []byte) *Parts {
	var holes []hole
	var removed []rawjson.Span
	p := &Parts{gaps: make(map[int][]byte)}
	take := func(kind byte, part *[]byte, span rawjson.Span, without []rawjson.Span) {
		if *part == nil && span.Len() > 0 {
			if *part = span.Of(body); len(without) > 0 {
				*part = redacted(nil, body, without, span.Start, span.End)
			}
			holes = append(holes, hole{kind, span})
		}
	}
	field := func(name string, span rawjson.Span) {
		if name == systemNames[0] || name == systemNames[1] {
			take(holeSystem, &p.System, span, nil)
			return
		}
		without := privateIn(span.Of(body), name, span.Start)
		removed = append(removed, without...)
		if name == toolsName {
			take(holeTools, &p.Tools, span, without)
		}
	}
	if elements == nil {
		var ok bool
		if elements, ok = scan(body, list, field); !ok {
			return nil
		}
	} else {
		rawjson.FieldsAround(body, rawjson.Span{Start: elements[0].Start, End: elements[len(elements)-1].End}, field)
	}
	if len(elements) > maxElements {
		elements = nil // a part of the frame
	}
	if len(elements) > 0 {
		run := rawjson.Span{Start: elements[0].Start, End: elements[len(elements)-1].End}
		at := 0
		for at < len(holes) && holes[at].Start < run.Start {
			at++
		}
		holes = append(holes[:at], append([]hole{{holeList, run}}, holes[at:]...)...)
	}
	p.takeElements(body, elements, separator)
	p.Frame, p.sum = frame(body, holes, p.Separator, removed), sumOf(body, removed)
	return p
}

// scan reads a body whose messages are not known.
func scan(body []byte, list string, field func(string, rawjson.Span)) (elements []rawjson.Span, ok bool) {
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, false
	}
	found := false
	for key := range r.Fields() {
		if string(key) != list || found {
			field(string(key), r.Skip())
			continue
		}
		found = true
		if r.Kind() == '[' {
			for range r.Elements() {
				elements = append(elements, r.Skip())
			}
		} else {
			elements = append(elements, r.Skip())
		}
	}
	return elements, r.End() == nil
}

func (p *Parts) takeElements(body []byte, elements []rawjson.Span, separator []byte) {
	if p.Separator = separator; separator == nil {
		p.Separator = []byte{','}
		if len(elements) > 1 {
			p.Separator = body[elements[0].End:elements[1].Start]
		}
	}
	p.Elements = make([][]byte, len(elements))
	for i, e := range elements {
		p.Elements[i] = e.Of(body)
		if i == 0 {
			continue
		}
		if gap := body[elements[i-1].End:e.Start]; !bytes.Equal(gap, p.Separator) {
			p.gaps[i] = gap
		}
	}
}

// frame encodes the bytes of a body outside the holes: the number of holes, the
// kind of each and how many bytes are before it since the last one, the
// separator of the list after its length, and the bytes. Numbers are varints.
func frame(body []byte, holes []hole, separator []byte, removed []rawjson.Span) []byte {
	out := binary.AppendUvarint(nil, uint64(len(holes)))
	var rest []byte
	at := 0
	for _, h := range holes {
		before := len(rest)
		rest = redacted(rest, body, removed, at, h.Start)
		out = append(out, h.kind)
		out = binary.AppendUvarint(out, uint64(len(rest)-before))
		at = h.End
	}
	out = binary.AppendUvarint(out, uint64(len(separator)))
	out = append(out, separator...)
	return redacted(append(out, rest...), body, removed, at, len(body))
}

var errFrame = errors.New("invalid frame")

// join makes a body of its parts again.
func join(frame, system, tools []byte, l *list) ([]byte, error) {
	r := reader{in: frame}
	type gap struct {
		kind   byte
		before int
	}
	n := r.count(2)
	gaps := make([]gap, 0, n)
	for range n {
		gaps = append(gaps, gap{r.byte(), r.number()})
	}
	separator := r.bytes(r.number())
	if r.failed {
		return nil, errFrame
	}
	var out []byte
	for _, g := range gaps {
		out = append(out, r.bytes(g.before)...)
		switch g.kind {
		case holeSystem:
			out = append(out, system...)
		case holeTools:
			out = append(out, tools...)
		case holeList:
			for i, e := range l.elements {
				if other, ok := l.gaps[i]; ok {
					out = append(out, other...)
				} else if i > 0 {
					out = append(out, separator...)
				}
				out = append(out, e...)
			}
		default:
			return nil, errFrame
		}
	}
	if r.failed {
		return nil, errFrame
	}
	return append(out, r.rest()...), nil
}
