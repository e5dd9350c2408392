package transcript

import (
	"bytes"
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
)

// probe is what detection sees of a file: its first records.
type probe struct {
	// kind says what the file is: '{' for one JSON object, '[' for a JSON
	// array, 'l' for JSON Lines, 't' for anything else.
	kind byte
	// objects are the one object, the first objects in the array, or the
	// first lines. Broken lines and elements of other kinds are left out. Of
	// one object that breaks off, the last field is what there is of it.
	objects []object
	// text is the beginning of the file.
	text []byte
}

// object holds the fields of a JSON object by name, each as its JSON.
type object map[string][]byte

const (
	probeObjects = 32      // how many objects detection sees
	probeLines   = 256     // among how many lines
	probeBytes   = 8 << 20 // and bytes; the first object may be of any size
	probeText    = 64 << 10
	probeFields  = 200 // of one object
)

func newProbe(data []byte) *probe {
	p := &probe{kind: 't', text: data[:min(len(data), probeText)]}
	trimmed := bytes.TrimLeft(data, " \t\r\n\x00")
	if len(trimmed) == 0 {
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
	// The first line may be torn off.
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

// is reports whether the file is of one of the kinds and has an object to
// look at.
func (p *probe) is(kinds ...byte) bool {
	return bytes.IndexByte(kinds, p.kind) >= 0 && len(p.objects) > 0
}

// any reports whether an object has the property.
func (p *probe) any(has func(o object) bool) bool {
	return slices.ContainsFunc(p.objects, has)
}

// objectOf reads the fields of a JSON object as far as they go; of several
// with one name the last. Anything else gives an empty object.
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

// tornObject reads the fields of a JSON object that breaks off.
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

// has reports whether all the fields are there, null or not.
func (o object) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o[n]; !ok {
			return false
		}
	}
	return true
}

// kind tells what a field is: '{', '[', '"', '0' for a number, 't', 'f', 'n',
// or 0 if it is not there.
func (o object) kind(name string) byte { return rawjson.NewReader(o[name]).Kind() }

// str gives a field that is a string, decoded; "" otherwise.
func (o object) str(name string) string { return rawjson.Unquote(o[name]) }

// num gives a field that is a whole number; 0 otherwise.
func (o object) num(name string) int {
	n, _ := rawjson.NewReader(o[name]).Int()
	return n
}

// flag reports whether a field is true.
func (o object) flag(name string) bool { return string(o[name]) == "true" }

// object gives a field that is an object; otherwise an empty one.
func (o object) object(name string) object { return objectOf(o[name]) }
