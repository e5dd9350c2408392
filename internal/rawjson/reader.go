package rawjson

import (
	"iter"
	"strconv"
)

// Reader walks one JSON value. Between calls its position is before a value:
// the top-level one or, inside a Fields or Elements loop, the one of the
// current iteration. That value may be consumed once, by Skip, Raw, String,
// Int, Bool, Fields or Elements.
type Reader struct {
	b      []byte
	pos    int
	depth  int
	nameAt int  // start of the newest field name
	gap    Span // to be skipped as one value; empty: none
	err    *Error

	ambiguous string // see FieldsOf
}

// NewReader returns a Reader positioned before the value in b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Kind returns the type of the next value without consuming it: '{', '[',
// '"', '0' for a number, 't', 'f', 'n', or 0 if there is no value or an error
// occurred.
func (r *Reader) Kind() byte {
	r.space()
	if r.err != nil || r.pos >= len(r.b) {
		return 0
	}
	switch c := r.b[r.pos]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// Offset returns the start of the next value.
func (r *Reader) Offset() int {
	r.space()
	return r.pos
}

// Pos returns the end of the value consumed last, if no other method was
// called since.
func (r *Reader) Pos() int { return r.pos }

// Err returns the first error so far, nil or an *Error.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// End checks that only white space follows, and returns the first error.
func (r *Reader) End() error {
	r.space()
	if r.err == nil && r.pos < len(r.b) {
		r.fail(r.pos, "unexpected bytes after the value")
	}
	return r.Err()
}

// Skip consumes the value and returns its position.
func (r *Reader) Skip() Span {
	r.space()
	start := r.pos
	r.skip()
	if r.err != nil {
		return Span{}
	}
	return Span{start, r.pos}
}

// Raw consumes the value and returns its bytes, which alias the input.
func (r *Reader) Raw() []byte {
	s := r.Skip()
	if r.err != nil {
		return nil
	}
	return s.Of(r.b)
}

// Value is the bytes of a value, kept for later reading.
type Value struct {
	Raw   []byte // nil: no value
	flags int    // what a string contains besides plain ASCII
}

// Text decodes a string as [Unquote] does, but faster, because the first
// reading has recorded what it contains. It returns "" for other values.
func (v Value) Text() string {
	if len(v.Raw) < 2 || v.Raw[0] != '"' {
		return ""
	}
	return decode(v.Raw[1:len(v.Raw)-1], v.flags)
}

// Inside returns the bytes between a string's quotes, including escapes; nil
// for other values.
func (v Value) Inside() []byte {
	if len(v.Raw) < 2 || v.Raw[0] != '"' {
		return nil
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// Value consumes the value and returns it for later.
func (r *Reader) Value() Value {
	if r.Kind() != '"' {
		return Value{Raw: r.Raw()}
	}
	start := r.pos
	flags := r.str()
	if r.err != nil {
		return Value{}
	}
	return Value{r.b[start:r.pos:r.pos], flags}
}

// Fields consumes an object and yields the name of each field, unescaped and
// without quotes; it may alias the input. In the loop the Reader is positioned
// before the field's value. Leaving the loop early skips the rest of the
// object. A value other than an object is an error.
func (r *Reader) Fields() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { r.fields(yield) }
}

func (r *Reader) fields(yield func([]byte) bool) {
	if !r.open('{', "expected an object") || r.closed('}') {
		return
	}
	more := true
	for r.err == nil {
		key := r.name()
		if r.err != nil {
			return
		}
		at := r.pos
		if more {
			more = yield(key)
		}
		if r.pos == at {
			r.skip()
		}
		if !r.next('}', "expected ',' or '}'") {
			return
		}
	}
}

// Elements consumes an array and yields the index of each element. In the
// loop the Reader is positioned before the element. Leaving the loop early
// skips the rest of the array. A value other than an array is an error.
func (r *Reader) Elements() iter.Seq[int] {
	return func(yield func(int) bool) { r.elements(yield) }
}

func (r *Reader) elements(yield func(int) bool) {
	if !r.open('[', "expected an array") || r.closed(']') {
		return
	}
	more := true
	for i := 0; r.err == nil; i++ {
		r.space()
		at := r.pos
		if more {
			more = yield(i)
		}
		if r.pos == at {
			r.skip()
		}
		if !r.next(']', "expected ',' or ']'") {
			return
		}
	}
}

// String consumes the value and, if it is a string, returns it decoded as
// [Unquote] does. It skips other values and returns false.
func (r *Reader) String() (string, bool) {
	if r.Kind() != '"' {
		r.Skip()
		return "", false
	}
	start := r.pos
	flags := r.str()
	if r.err != nil {
		return "", false
	}
	return decode(r.b[start+1:r.pos-1], flags), true
}

// Int consumes the value and, if it is an integer that fits, returns it. It
// skips other values and returns false.
func (r *Reader) Int() (int, bool) {
	number := r.Kind() == '0'
	raw := r.Raw()
	if !number || r.err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(raw))
	return n, err == nil
}

// Bool consumes the value and, if it is true or false, returns it. It skips
// other values and returns false.
func (r *Reader) Bool() (value, ok bool) {
	k := r.Kind()
	r.Skip()
	return k == 't' && r.err == nil, (k == 't' || k == 'f') && r.err == nil
}
