package transcript

import (
	"bytes"
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
)

// probe is the start of a file, as detection sees it.
type probe struct {
	// kind is the layout of the file: '{' for one JSON object, '[' for a JSON
	// array, 'l' for JSON Lines, 't' for anything else.
	kind byte
	// objects are the single object, the first objects in the array, or the
	// first lines. Broken lines and elements of other types are skipped. If a
	// single object is truncated, its last field is truncated too.
	objects []object
	// text is the start of the file.
	text []byte
}

// object contains the fields of a JSON object by name, each as JSON.
type object map[string][]byte

const (
	probeObjects = 32      // how many objects detection sees
	probeLines   = 256     // how many lines are searched for them
	probeBytes   = 8 << 20 // how many bytes are searched; the first object may have any size
	probeText    = 64 << 10
	probeFields  = 200 // of one object
)

func newProbe(data []byte) *probe {
	p := &probe{kind: 't', text: data[:min(len(data), probeText)]}
	trimmed := bytes.TrimLeft(data, " \t\r\n\x00")
	if len(trimmed) == 0 || startsSpecStory(p.text) { // JSON in it is quoted
		return p
	}
	switch trimmed[0] {
	case '[':
		p.kind = '['
		r := rawjson.NewReader(trimmed)
		for range r.Elements() {
			if len(p.objects) >= probeObjects || (len(p.objects) > 0 && r.Pos() > probeBytes) {
				break
			}
			if r.Kind() == '{' {
				p.objects = append(p.objects, readObject(r))
			}
		}
		return p
	case '{':
		r := rawjson.NewReader(trimmed)
		first := readObject(r)
		whole := r.Err() == nil
		if whole && len(bytes.TrimLeft(trimmed[r.Pos():], " \t\r\n\x00")) == 0 {
			p.kind, p.objects = '{', []object{first}
			return p
		}
		if p.lines(data); len(p.objects) > 0 {
			p.kind = 'l'
			return p
		}
		if !whole {
			p.kind, p.objects = '{', []object{tornObject(trimmed)}
		}
		return p
	}
	// The first line may be truncated.
	if p.lines(data); len(p.objects) > 0 {
		p.kind = 'l'
	}
	return p
}

// lines collects the first objects of JSON Lines.
func (p *probe) lines(data []byte) {
	n := 0
	for _, line := range splitLines(data[:min(len(data), probeBytes+firstLine(data))]) {
		if n++; n > probeLines {
			return
		}
		for o, fault := range eachObject(line) {
			if fault != nil {
				break
			}
			if len(p.objects) >= probeObjects {
				return
			}
			p.objects = append(p.objects, objectOf(o))
		}
	}
}

func firstLine(data []byte) int {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1
	}
	return len(data)
}

// is reports whether the file has one of the layouts and contains an object.
func (p *probe) is(kinds ...byte) bool {
	return bytes.IndexByte(kinds, p.kind) >= 0 && len(p.objects) > 0
}

// any reports whether an object has the property.
func (p *probe) any(has func(o object) bool) bool {
	return slices.ContainsFunc(p.objects, has)
}

// objectOf reads the fields of a JSON object up to the first error. Of
// several fields with one name it returns the last. Other data gives an empty
// object.
func objectOf(raw []byte) object {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return object{}
	}
	return readObject(r)
}

func readObject(r *rawjson.Reader) object {
	o := object{}
	for key := range r.Fields() {
		if len(o) >= probeFields {
			continue
		}
		if raw := r.Raw(); raw != nil {
			o[string(key)] = raw
		}
	}
	return o
}

// tornObject reads the fields of a truncated JSON object.
func tornObject(raw []byte) object {
	o := object{}
	r := rawjson.NewReader(raw)
	for key := range r.Fields() {
		name, start := string(key), r.Offset()
		if value := r.Raw(); value != nil {
			o[name] = value
		} else {
			o[name] = raw[start:]
		}
		if len(o) >= probeFields {
			break
		}
	}
	return o
}

// has reports whether all the fields are present, null or not.
func (o object) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o[n]; !ok {
			return false
		}
	}
	return true
}

// kind returns the type of a field: '{', '[', '"', '0' for a number, 't',
// 'f', 'n', or 0 if it is absent.
func (o object) kind(name string) byte { return rawjson.NewReader(o[name]).Kind() }

// str returns a string field, decoded; "" for other types.
func (o object) str(name string) string { return rawjson.Unquote(o[name]) }

// num returns a field that is a whole number; 0 for other values.
func (o object) num(name string) int {
	n, _ := rawjson.NewReader(o[name]).Int()
	return n
}

// flag reports whether a field is true.
func (o object) flag(name string) bool { return string(o[name]) == "true" }

// object returns a field that is an object; otherwise an empty object.
func (o object) object(name string) object { return objectOf(o[name]) }
