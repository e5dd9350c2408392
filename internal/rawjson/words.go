package rawjson

import "strings"

// ObjectOf returns text itself if it is a JSON object, and otherwise an object with the text
// in the given field, {} if it is blank.
func ObjectOf(text, field string) []byte {
	raw := []byte(text)
	if NewReader(raw).Kind() == '{' && Check(raw) == nil {
		return raw
	}
	if strings.TrimSpace(text) == "" {
		return []byte("{}")
	}
	out := AppendString([]byte{'{'}, field)
	out = AppendString(append(out, ':'), text)
	return append(out, '}')
}

// maxWordsDepth is how deep Words looks into a value.
const maxWordsDepth = 64

// Words collects the strings in a value of unknown type, for sizing and search.
type Words struct {
	// Most is how many bytes are collected.
	Most int
	// Use says what a string in a field is.
	Use func(field string) Use

	text   strings.Builder
	secret int
}

// Use is what a string is for.
type Use int

// The uses of a string: words, names and numbers that nobody looks for, and signed or
// encrypted bytes.
const (
	Word Use = iota
	Ignored
	Secret
)

// Read collects the strings in a value, one a line. secret is the number of bytes that are
// signed or encrypted.
func (w *Words) Read(value []byte) (text string, secret int) {
	w.walk(NewReader(value), "", 0)
	return w.text.String(), w.secret
}

func (w *Words) walk(r *Reader, field string, depth int) {
	kind := r.Kind()
	if depth == maxWordsDepth && (kind == '{' || kind == '[') {
		r.Skip()
		return
	}
	switch kind {
	case '{':
		for key := range r.Fields() {
			w.walk(r, string(key), depth+1)
		}
	case '[':
		for range r.Elements() {
			w.walk(r, field, depth+1)
		}
	case '"':
		switch w.Use(field) {
		case Word:
			w.add(r)
		case Secret:
			w.secret += len(r.Value().Inside())
		default:
			r.Skip()
		}
	default:
		r.Skip()
	}
}

func (w *Words) add(r *Reader) {
	room := w.Most - w.text.Len() - 1
	if room <= 0 {
		r.Skip()
		return
	}
	s, _ := r.String()
	if len(s) > room {
		s = strings.ToValidUTF8(s[:room], "")
	}
	if s == "" {
		return
	}
	if w.text.Len() > 0 {
		w.text.WriteByte('\n')
	}
	w.text.WriteString(s)
}
