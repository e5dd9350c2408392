package anthropic

import "github.com/furlhq/furl/internal/rawjson"

// maxWords is how many bytes are read from a block that furl does not know.
const maxWords = 1 << 20

// readWords collects the strings in a block of unknown type, one a line, and
// counts the signed or encrypted bytes.
func readWords(raw []byte) (text string, secret int) {
	w := rawjson.Words{Most: maxWords, Use: func(field string) rawjson.Use {
		switch field {
		case "type", "id", "tool_use_id", "file_id", "media_type", "ttl":
			return rawjson.Ignored
		case "signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout":
			return rawjson.Secret
		}
		return rawjson.Word
	}}
	return w.Read(raw)
}
