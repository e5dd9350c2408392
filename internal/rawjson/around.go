package rawjson

import (
	"bytes"
	"slices"
)

// FieldsAround reads the fields of an object without the bytes between two
// offsets, which may be nearly all of it: values in a list, or one value.
// Adding shift to an offset of the reader gives the offset in the object: it
// is 0 before the gap. Of a truncated object it reads the part that exists.
func FieldsAround(obj []byte, from, to int, field func(name string, r *Reader, shift int)) {
	if from < 0 || from > to || to > len(obj) {
		return
	}
	rest := slices.Concat(obj[:from], []byte{'0'}, obj[to:]) // a number replaces the values
	r := NewReader(rest)
	for key := range r.Fields() {
		shift := 0
		if r.Offset() > from {
			shift = to - from - 1
		}
		field(string(key), r, shift)
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
