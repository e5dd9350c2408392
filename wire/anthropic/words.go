package anthropic

import (
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// Limits of what is read from a block that furl does not know.
const (
	maxWords      = 1 << 20 // bytes
	maxWordsDepth = 64
)

// readWords collects the strings in a block of unknown type, one a line, and
// counts the signed or encrypted bytes.
func readWords(raw []byte) (text string, secret int) {
	var w words
	w.walk(rawjson.NewReader(raw), "", 0)
	return w.text.String(), w.secret
}

type words struct {
	text   strings.Builder
	secret int
}

func (w *words) walk(r *rawjson.Reader, name string, depth int) {
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
			w.walk(r, name, depth+1)
		}
	case '"':
		switch name {
		case "type", "id", "tool_use_id", "file_id", "media_type", "ttl":
			r.Skip()
		case "signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout":
			w.secret += len(r.Value().Inside())
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
