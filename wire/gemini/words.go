package gemini

import (
	"cmp"

	"github.com/furlhq/furl/internal/rawjson"
)

// maxWords is how many bytes are read from a part that furl does not know.
const maxWords = 1 << 20

// readWords collects the strings in a value, one a line.
func readWords(raw []byte) string {
	w := rawjson.Words{Most: maxWords, Use: func(field string) rawjson.Use {
		switch cmp.Or(names[field], field) {
		case "id", "mimeType", "data", "fileUri", "thoughtSignature":
			return rawjson.Ignored
		}
		return rawjson.Word
	}}
	text, _ := w.Read(raw)
	return text
}
