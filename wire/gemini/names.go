package gemini

import (
	"iter"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
)

// names are the fields that furl reads, by the names under which Google accepts them:
// the JSON name and the original one of a protocol buffer's field
// (protobuf.dev/programming-guides/json, "Field names").
var names = make(map[string]string)

func init() {
	for name := range strings.FieldsSeq(`contents tools toolConfig systemInstruction generationConfig cachedContent generateContentRequest model
		role parts text thought thoughtSignature functionCall functionResponse inlineData fileData executableCode codeExecutionResult toolCall toolResponse
		videoMetadata mediaResolution mediaProcessing partMetadata speechMetadata audioTranscription
		id name args response mimeType data fileUri displayName functionDeclarations
		maxOutputTokens thinkingConfig responseMimeType responseSchema responseJsonSchema responseModalities candidateCount stopSequences
		candidates content finishReason index usageMetadata promptFeedback blockReason blockReasonMessage modelVersion responseId`) {
		names[name], names[snake(name)] = name, name
	}
}

// snake returns the original name of a field: functionCall is function_call.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// fields is Reader.Fields with the names of known fields in their JSON form; those of
// other fields are yielded as they are. If a field occurs twice, in whatever form, it is
// set in ambiguous unless that is nil: parsers differ in which one they use.
func fields(r *rawjson.Reader, ambiguous *string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var few [8]string
		seen := few[:0]
		for key := range r.Fields() {
			name, ok := names[string(key)]
			if !ok {
				if !yield(string(key)) {
					return
				}
				continue
			}
			for _, s := range seen {
				if s == name && ambiguous != nil && *ambiguous == "" {
					*ambiguous = name
				}
			}
			if len(seen) < maxSeen {
				seen = append(seen, name)
			}
			if !yield(name) {
				return
			}
		}
	}
}

// maxSeen bounds the names that fields compares: no object has so many known fields.
const maxSeen = 64

// value returns the value of a field of an object, under either name; nil if there is
// none.
func value(obj []byte, name string) (v []byte) {
	r := rawjson.NewReader(obj)
	if r.Kind() != '{' {
		return nil
	}
	for key := range fields(r, nil) {
		if key == name {
			v = r.Raw()
		}
	}
	return v
}

// text returns the string in a field, "" if there is none.
func text(obj []byte, name string) string { return rawjson.Unquote(value(obj, name)) }

// nameIn returns the name that an object has for a field: the original one if it uses
// that, else the JSON name.
func nameIn(obj []byte, name string) string {
	other := snake(name)
	if other != name && rawjson.Field(obj, name) == nil && rawjson.Field(obj, other) != nil {
		return other
	}
	return name
}

// set returns the edits that set a field of an object, under the name that the object
// uses for it.
func set(obj []byte, name string, v []byte) []rawjson.Edit {
	return rawjson.SetField(obj, nameIn(obj, name), v)
}

// with returns the object with a field set.
func with(obj []byte, name string, v []byte) []byte { return rawjson.Splice(obj, set(obj, name, v)) }

// without returns the object without a field, under either name.
func without(obj []byte, name string) []byte {
	obj = rawjson.Splice(obj, rawjson.DropField(obj, name))
	if other := snake(name); other != name {
		obj = rawjson.Splice(obj, rawjson.DropField(obj, other))
	}
	return obj
}

// editing returns the object with edit applied to the object in a field. Without such a
// field it is returned unchanged.
func editing(obj []byte, name string, edit func([]byte) []byte) []byte {
	return rawjson.EditField(obj, nameIn(obj, name), edit)
}

// isNull reports whether a value is missing or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }
