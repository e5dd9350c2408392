package rebuild

import (
	"bytes"
	"hash/crc32"

	"github.com/furlhq/furl/internal/rawjson"
)

// Requests can have credentials outside the messages: of MCP servers, of data
// sources, in headers that a provider is to send. Other fields name the user. None of
// them is recorded: the described body has a placeholder in place of such a value.

// placeholder is what a recorded body has in place of a removed value.
var placeholder = []byte(`"[removed by furl]"`)

// credentials are parts of the names of fields with credentials, in lower case and
// without "_" and "-". A field named just "key", or with a name that ends in "token"
// or "headers", has credentials too.
var credentials = [][]byte{
	[]byte("authorization"), []byte("authentication"), []byte("apikey"), []byte("secret"), []byte("password"), []byte("credential"), []byte("cookie"),
}

// persons are the names of fields that identify a user, or hold what a client notes
// about a request.
var persons = map[string]bool{"user": true, "userid": true, "safetyidentifier": true, "metadata": true}

// withSchemas are the fields of a request with JSON schemas, and schemas the names of
// the fields in them that have one: the names in a schema are those of arguments.
var withSchemas = map[string]bool{"tools": true, "functions": true, "responseformat": true, "outputformat": true, "outputconfig": true, "text": true}

var schemas = map[string]bool{"inputschema": true, "parameters": true, "schema": true, "properties": true, "definitions": true}

// fieldName appends the name of a field to out, in lower case and without "_" and "-".
func fieldName(out, name []byte) []byte {
	for _, c := range name {
		switch {
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		default:
			out = append(out, c)
		}
	}
	return out
}

// private reports whether the values of a field are removed.
func private(name []byte) bool {
	if persons[string(name)] || string(name) == "key" || bytes.HasSuffix(name, []byte("token")) || bytes.HasSuffix(name, []byte("headers")) {
		return true
	}
	for _, c := range credentials {
		if bytes.Contains(name, c) {
			return true
		}
	}
	return false
}

// maxDepth bounds the recursion. What is nested deeper is removed.
const maxDepth = 64

// privateIn returns the positions of the values to remove in the value of a field,
// in order. shift is added to them.
func privateIn(value []byte, name string, shift int) []rawjson.Span {
	field := fieldName(nil, []byte(name))
	w := redactor{r: rawjson.NewReader(value), shift: shift, schemas: withSchemas[string(field)]}
	w.value(private(field), 0)
	return w.spans
}

type redactor struct {
	r       *rawjson.Reader
	shift   int
	schemas bool
	spans   []rawjson.Span
	field   []byte // the name of the field at hand
}

// value reads the next value, of which the scalars are removed if within is set.
func (w *redactor) value(within bool, depth int) {
	kind := w.r.Kind()
	switch {
	case depth == maxDepth && (kind == '{' || kind == '['), within && (kind == '"' || kind == '0'):
		if s := w.r.Skip(); s.Len() > len(`""`) || kind != '"' {
			w.spans = append(w.spans, rawjson.Span{Start: s.Start + w.shift, End: s.End + w.shift})
		}
	case kind == '{':
		for key := range w.r.Fields() {
			w.field = fieldName(w.field[:0], key)
			if within || !w.schemas || !schemas[string(w.field)] {
				w.value(within || private(w.field), depth+1)
			}
		}
	case kind == '[':
		for range w.r.Elements() {
			w.value(within, depth+1)
		}
	default:
		w.r.Skip()
	}
}

// redacted appends body[from:to] with the values at spans replaced. spans are in
// order, and none is partly outside.
func redacted(out, body []byte, spans []rawjson.Span, from, to int) []byte {
	for _, s := range spans {
		if s.Start < from || s.End > to {
			continue
		}
		out = append(append(out, body[from:s.Start]...), placeholder...)
		from = s.End
	}
	return append(out, body[from:to]...)
}

// sumOf is the checksum of a body with the values at spans replaced.
func sumOf(body []byte, spans []rawjson.Span) (sum uint32) {
	at := 0
	for _, s := range spans {
		sum = crc32.Update(sum, castagnoli, body[at:s.Start])
		sum = crc32.Update(sum, castagnoli, placeholder)
		at = s.End
	}
	return crc32.Update(sum, castagnoli, body[at:])
}

// Redact returns a body as it is recorded, for tests that compare bodies. list is the
// name of the field with the messages.
func Redact(body []byte, list string) []byte {
	var spans []rawjson.Span
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		r.Kind() // moves to the value
		if s := r.Skip(); string(key) != list && !bytes.Equal(key, []byte(systemNames[0])) && !bytes.Equal(key, []byte(systemNames[1])) {
			spans = append(spans, privateIn(s.Of(body), string(key), s.Start)...)
		}
	}
	return redacted(nil, body, spans, 0, len(body))
}
