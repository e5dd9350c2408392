package toolscript

import (
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
)

type valueKind uint8

const (
	kindUnknown valueKind = iota
	kindLiteral           // a number, true, false, null or undefined: text as written
	kindText
	kindList
	kindObject
	kindFunction
	kindToolbox // the object whose methods are the tools
	kindTool    // a tool: its name, or "" if unknown
	kindMethod  // of base, or a global object if base is nil
)

// Hole is in a text in place of what a script does not say by itself.
const Hole = "\uFFFC"

// value is what a script says of an expression.
type value struct {
	kind valueKind
	text string // also a method's name
	// elements and fields may be known in part: of a list that a script appends to in a loop
	// those of one round.
	elements *[]value
	fields   *[]field
	function *funcValue
	base     *value
}

type field struct {
	name  string
	value value
}

type funcValue struct {
	tokens  []token
	params  int // the index of its parameter, or of the bracket before them
	body    int
	scope   *scope
	applied bool
}

func textValue(s string) value { return value{kind: kindText, text: s} }

func listValue(elements []value) value { return value{kind: kindList, elements: &elements} }

// field is a field of an object; ok is false if there is none.
func (v *value) field(name string) (_ value, ok bool) {
	if v.kind != kindObject {
		return value{}, false
	}
	for _, f := range slices.Backward(*v.fields) {
		if f.name == name {
			return f.value, true
		}
	}
	return value{}, false
}

// set changes or adds a field, of maxFields at most.
func (v *value) set(name string, to value) {
	for i := range *v.fields {
		if (*v.fields)[i].name == name {
			(*v.fields)[i].value = to
			return
		}
	}
	if len(*v.fields) < maxFields {
		*v.fields = append(*v.fields, field{name, to})
	}
}

// appendJSON appends the value as JSON, without fields that are unknown; unknown
// elements of lists are null. depth bounds values that contain themselves.
func (v *value) appendJSON(out []byte, depth int) []byte {
	switch {
	case depth > maxDepth || len(out) > maxArguments:
		return append(out, "null"...)
	case v.kind == kindText:
		return rawjson.AppendString(out, v.text)
	case v.kind == kindLiteral && isJSON(v.text):
		return append(out, v.text...)
	case v.kind == kindList:
		out = append(out, '[')
		for i := range *v.elements {
			if len(out) > maxArguments {
				break
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = (*v.elements)[i].appendJSON(out, depth+1)
		}
		return append(out, ']')
	case v.kind == kindObject:
		out = append(out, '{')
		first := true
		for i := range *v.fields {
			f := &(*v.fields)[i]
			if len(out) > maxArguments {
				break
			}
			if k := f.value.kind; k == kindUnknown || k >= kindFunction || f.value.text == "undefined" && k == kindLiteral {
				continue
			}
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(rawjson.AppendString(out, f.name), ':')
			out = f.value.appendJSON(out, depth+1)
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}

// isJSON reports whether a literal of JavaScript is one of JSON.
func isJSON(s string) bool { return rawjson.Check([]byte(s)) == nil }

// scope has the values of names.
type scope struct {
	names map[string]value
	outer *scope
}

func (s *scope) inner() *scope { return &scope{outer: s} }

func (s *scope) declare(name string, v value) {
	if s.names == nil {
		s.names = make(map[string]value)
	}
	s.names[name] = v
}

func (s *scope) find(name string) (value, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return value{}, false
}

// assign changes a declared name; of the outermost scope others too.
func (s *scope) assign(name string, v value) {
	for ; s != nil; s = s.outer {
		if _, ok := s.names[name]; ok || s.outer == nil {
			s.declare(name, v)
			return
		}
	}
}
