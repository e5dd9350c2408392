package gemini

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// Limits of what is read from a part that furl does not know.
const (
	maxWords      = 1 << 20 // bytes
	maxWordsDepth = 64
)

// readWords collects the strings in a value, one a line.
func readWords(raw []byte) string {
	var w words
	w.walk(rawjson.NewReader(raw), "", 0)
	return w.text.String()
}

type words struct{ text strings.Builder }

func (w *words) walk(r *rawjson.Reader, name string, depth int) {
	kind := r.Kind()
	if depth == maxWordsDepth && (kind == '{' || kind == '[') {
		r.Skip()
		return
	}
	switch kind {
	case '{':
		for key := range fields(r, nil) {
			w.walk(r, key, depth+1)
		}
	case '[':
		for range r.Elements() {
			w.walk(r, name, depth+1)
		}
	case '"':
		switch name {
		case "id", "mimeType", "data", "fileUri", "thoughtSignature":
			r.Skip()
		default:
			w.add(r)
		}
	default:
		r.Skip()
	}
}

func (w *words) add(r *rawjson.Reader) {
	room := maxWords - w.text.Len() - 1
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
