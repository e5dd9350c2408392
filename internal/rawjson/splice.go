package rawjson

// Edit replaces the bytes of a span; an empty span inserts.
type Edit struct {
	Span
	New []byte
}

// Splice returns b with the edits applied. The edits must be in order and
// must not overlap. Without edits it returns b itself; otherwise b is not
// changed and the result shares no memory with it.
func Splice(b []byte, edits []Edit) []byte {
	if len(edits) == 0 {
		return b
	}
	size := len(b)
	for _, e := range edits {
		size += len(e.New) - e.Len()
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(out, b[at:e.Start]...)
		out = append(out, e.New...)
		at = e.End
	}
	return append(out, b[at:]...)
}

// Item is an element of the list that List makes.
type Item struct {
	// Index is the element's index in the old list; -1 for a new element.
	Index int
	// New contains the bytes of a new element, or the replacement of an old
	// one. If nil, the old element is kept.
	New []byte
	// Edits change an old element that is kept. They count from its start. So
	// the edits of all levels are applied at once, and nothing is copied twice.
	Edits []Edit
}

// List returns the edits that turn an array with the elements elems into one
// with the given items. Old elements must keep their order; those without an
// item are removed with one comma. Bytes between kept elements are kept; next
// to a new element there is only a comma. inside is the span between the
// array's brackets and is used if the old or the new list is empty.
func List(inside Span, elems []Span, items []Item) []Edit {
	if len(elems) == 0 || len(items) == 0 {
		if len(elems) == len(items) {
			return nil
		}
		return []Edit{{Span: inside, New: joined(items)}}
	}
	changed := 1
	for i := range items {
		if items[i].Index < 0 || items[i].New != nil {
			changed++
		}
		changed += len(items[i].Edits)
	}
	edits := make([]Edit, 0, 2*changed)
	edit := func(start, end int, b []byte) {
		if start < end || len(b) > 0 {
			edits = append(edits, Edit{Span{start, end}, b})
		}
	}
	next := 0            // the first old element not handled yet
	at := elems[0].Start // everything before is handled
	comma := false       // an element precedes
	for _, it := range items {
		if it.Index < 0 {
			if comma {
				edit(at, at, []byte{','})
			}
			edit(at, at, it.New)
			comma = true
			continue
		}
		e := elems[it.Index]
		switch {
		case !comma:
			edit(at, e.Start, nil)
		case it.Index == 0:
			edit(at, at, []byte{','})
		default:
			// Cut up to the end of the previous element: the bytes between it
			// and this one, including the comma, are kept.
			edit(at, elems[it.Index-1].End, nil)
		}
		if it.New != nil {
			edit(e.Start, e.End, it.New)
		} else {
			for _, inner := range it.Edits {
				edit(e.Start+inner.Start, e.Start+inner.End, inner.New)
			}
		}
		at, next, comma = e.End, it.Index+1, true
	}
	if next < len(elems) {
		edit(at, elems[len(elems)-1].End, nil)
	}
	return edits
}

func joined(items []Item) []byte {
	var out []byte
	for i, it := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, it.New...)
	}
	return out
}
