package rawjson

// Field returns the value of a field of the object obj, the last one if there
// are several; nil if there is none, or obj is not an object.
func Field(obj []byte, name string) (value []byte) {
	r := NewReader(obj)
	if r.Kind() != '{' {
		return nil
	}
	for key := range r.Fields() {
		if string(key) == name {
			value = r.Raw()
		}
	}
	return value
}

// WithField returns the object obj with the field name set to a value, see
// SetField.
func WithField(obj []byte, name string, value []byte) []byte {
	return Splice(obj, SetField(obj, name, value))
}

// EditField applies edit to the object in a field of obj. Without such an
// object it returns obj unchanged.
func EditField(obj []byte, name string, edit func([]byte) []byte) []byte {
	old := Field(obj, name)
	if NewReader(old).Kind() != '{' {
		return obj
	}
	return WithField(obj, name, edit(old))
}

// SetField returns the edit that sets a field of the object obj. An existing
// field keeps its position and only its value changes; if there are several,
// that of the last one. Otherwise the field is added at the end. obj must be
// a valid object.
func SetField(obj []byte, name string, value []byte) []Edit {
	var at Span
	found, empty := false, true
	r := NewReader(obj)
	for key := range r.Fields() {
		empty = false
		if string(key) == name {
			at, found = r.Skip(), true
		}
	}
	if r.Err() != nil {
		return nil
	}
	if found {
		return []Edit{{at, value}}
	}
	var field []byte
	if !empty {
		field = append(field, ',')
	}
	field = AppendString(field, name)
	field = append(append(field, ':'), value...)
	end := r.Pos() - 1
	for end > 0 && isSpace(obj[end-1]) {
		end--
	}
	return []Edit{{Span{end, end}, field}}
}

// DropField returns the edits that remove every field of that name from the
// object obj, each with one comma. obj must be a valid object; for other
// values there are no edits.
func DropField(obj []byte, name string) []Edit {
	var fields []Span
	var keep []Item
	r := NewReader(obj)
	for key := range r.Fields() {
		start, drop := r.nameAt, string(key) == name
		fields = append(fields, Span{start, r.Skip().End})
		if !drop {
			keep = append(keep, Item{Index: len(fields) - 1})
		}
	}
	if r.Err() != nil || len(keep) == len(fields) {
		return nil
	}
	inside := Span{fields[0].Start, fields[len(fields)-1].End}
	return List(inside, fields, keep)
}

// Compact appends b without the white space between its tokens. b must be
// valid JSON. Escapes and numbers keep their form.
func Compact(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		start := i
		for i < len(b) && b[i] != '"' && !isSpace(b[i]) {
			i++
		}
		if i < len(b) && b[i] == '"' {
			r := Reader{b: b, pos: i}
			r.str()
			if r.err != nil {
				return append(dst, b[start:]...)
			}
			i = r.pos
		}
		dst = append(dst, b[start:i]...)
		for i < len(b) && isSpace(b[i]) {
			i++
		}
	}
	return dst
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
