package rawjson

import (
	"bytes"
	"slices"
)

// FieldsAround reads the fields of an object except the one that contains the
// bytes of gap, which it skips: values in a list, or one value. They may be
// nearly all of the object. Of a truncated object it reads the part that exists.
func FieldsAround(obj []byte, gap Span, field func(name string, value Span)) {
	if gap.Start < 0 || gap.Start > gap.End || gap.End > len(obj) {
		return
	}
	r := NewReader(obj)
	r.gap = gap
	for key := range r.Fields() {
		value := r.Skip()
		if r.err == nil && (value.Start > gap.Start || value.End < gap.End) {
			field(string(key), value)
		}
	}
}

// Elements returns the elements of a list, nil if it is not a list.
func Elements(list []byte) (elems [][]byte) {
	r := NewReader(list)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Elements() {
		elems = append(elems, r.Raw())
	}
	return elems
}

// AppendElement appends an element to a list; ok is false if it is not a
// list.
func AppendElement(list, element []byte) (_ []byte, ok bool) {
	if NewReader(list).Kind() != '[' {
		return nil, false
	}
	end := bytes.LastIndexByte(list, ']')
	if end < 0 {
		return nil, false
	}
	var comma []byte
	if len(bytes.TrimSpace(list[1:end])) > 0 {
		comma = []byte{','}
	}
	return slices.Concat(list[:end], comma, element, list[end:]), true
}

// Replaced returns an object with another value in an existing field. Without
// that field it returns the object itself.
func Replaced(obj []byte, name string, value []byte) []byte {
	if Field(obj, name) == nil {
		return obj
	}
	return Splice(obj, SetField(obj, name, value))
}

// LastElement returns the offset at which the last element of a list ends; ok is false if
// it is not a list, or has none.
func LastElement(list []byte) (end int, ok bool) {
	r := NewReader(list)
	if r.Kind() != '[' {
		return 0, false
	}
	for range r.Elements() {
		end, ok = r.Skip().End, true
	}
	return end, ok && r.err == nil
}
