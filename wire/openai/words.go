package openai

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// Limits of what is read from an item that furl does not know.
const (
	maxWords      = 1 << 20 // bytes
	maxWordsDepth = 64
)

// words collects the strings of an opaque item or part, for sizing and
// search.
type words struct {
	text   strings.Builder
	secret int // bytes of encrypted or binary strings
}

func (w *words) walk(r *rawjson.Reader, key string, depth int) {
	switch r.Kind() {
	case '{':
		if depth == maxWordsDepth {
			r.Skip()
			return
		}
		for key := range r.Fields() {
			w.walk(r, string(key), depth+1)
		}
	case '[':
		if depth == maxWordsDepth {
			r.Skip()
			return
		}
		for range r.Elements() {
			w.walk(r, key, depth+1)
		}
	case '"':
		raw := r.Raw()
		switch key {
		case "type", "id", "call_id", "item_id", "file_id", "container_id", "response_id", "status", "role", "format":
		case "encrypted_content", "data", "result", "signature":
			w.secret += stringLen(raw)
		default:
			w.add(raw)
		}
	default:
		r.Skip()
	}
}

func (w *words) add(raw []byte) {
	const scheme = `"data:`
	if len(raw) > len(scheme) && string(raw[:len(scheme)]) == scheme {
		w.secret += stringLen(raw)
		return
	}
	s := rawjson.Unquote(raw)
	if room := maxWords - w.text.Len(); len(s) >= room {
		s = strings.ToValidUTF8(s[:max(room-1, 0)], "")
	}
	if s == "" {
		return
	}
	if w.text.Len() > 0 {
		w.text.WriteByte('\n')
	}
	w.text.WriteString(s)
}
