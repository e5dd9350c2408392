package rawjson

import (
	"bytes"
	"slices"
)

// FieldsAround reads the fields of an object without what is between two
// offsets, which may be nearly all of it: values in a list, or one value. shift
// is what is added to an offset of the reader to have it in the object: it is 0
// before the gap. Of an object that is not whole it reads what there is.
func FieldsAround(obj []byte, from, to int, field func(name string, r *Reader, shift int)) {
	if from < 0 || from > to || to > len(obj) {
		return
	}
	rest := slices.Concat(obj[:from], []byte{'0'}, obj[to:]) // a number takes the place of the values
	r := NewReader(rest)
	for key := range r.Fields() {
		shift := 0
		if r.Offset() > from {
			shift = to - from - 1
		}
		field(string(key), r, shift)
	}
}

// Elements gives the elements of a list, nil if it is none.
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

// AppendElement gives a list with one more element; ok is false if list is none.
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

// Replaced gives an object with another value in a field that it has. Without
// such a field it gives the object itself.
func Replaced(obj []byte, name string, value []byte) []byte {
	if Field(obj, name) == nil {
		return obj
	}
	return Splice(obj, SetField(obj, name, value))
}
