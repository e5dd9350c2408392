package sim

import (
	"fmt"
	"maps"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Google's servers read JSON by a schema, and refuse every field that it does not have.
// They accept names in camel case and in snake case, and one value in place of a list.
// Sources: the types of @google/genai 3.3.0 and of cloud.google.com/go/ai 0.13.0, and
// errors in reports of clients (github.com/google-gemini/gemini-cli/issues/13972,
// github.com/zed-industries/zed/issues/53919).

// field is a value of the schema.
type field struct {
	fields map[string]*field // of an object, by name in camel case; nil: any value is accepted
	list   bool
	dict   bool // an object with any names, whose values are like this
	text   bool // a string
}

// geminiObject returns an object with fields that are not looked into.
func geminiObject(names string, inside map[string]*field) *field {
	f := &field{fields: make(map[string]*field)}
	for name := range strings.FieldsSeq(names) {
		f.fields[name] = &field{}
	}
	maps.Copy(f.fields, inside)
	return f
}

func geminiList(f *field) *field {
	out := *f
	out.list = true
	return &out
}

var geminiText = &field{text: true}

// geminiSchema is a schema of a function's parameters.
var geminiSchema = func() *field {
	s := geminiObject(`type format title description nullable enum maxItems minItems required minProperties maxProperties
		minLength maxLength pattern example propertyOrdering default minimum maximum additionalProperties ref defs`, nil)
	s.fields["items"] = s
	s.fields["anyOf"] = geminiList(s)
	dict := *s
	dict.dict = true
	s.fields["properties"] = &dict
	return s
}()

var geminiContent = geminiObject("", map[string]*field{
	"role": geminiText,
	"parts": geminiList(geminiObject("thought videoMetadata mediaResolution partMetadata executableCode codeExecutionResult toolCall toolResponse audioTranscription mediaProcessing speechMetadata", map[string]*field{
		"text":             geminiText,
		"thoughtSignature": geminiText,
		"inlineData":       geminiObject("mimeType data displayName", nil),
		"fileData":         geminiObject("mimeType fileUri displayName", nil),
		"functionCall":     geminiObject("id args partialArgs willContinue", map[string]*field{"name": geminiText}),
		"functionResponse": geminiObject("id response willContinue scheduling parts", map[string]*field{"name": geminiText}),
	})),
})

var geminiRequest = geminiObject("model safetySettings cachedContent labels serviceTier modelArmorConfig store", map[string]*field{
	"contents":          geminiList(geminiContent),
	"systemInstruction": geminiContent,
	"tools": geminiList(geminiObject("googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch googleMaps enterpriseWebSearch retrieval mcpServers exaAiSearch parallelAiSearch", map[string]*field{
		"functionDeclarations": geminiList(geminiObject("name description behavior parametersJsonSchema responseJsonSchema", map[string]*field{
			"parameters": geminiSchema,
			"response":   geminiSchema,
		})),
	})),
	"toolConfig": geminiObject("retrievalConfig includeServerSideToolInvocations", map[string]*field{
		"functionCallingConfig": geminiObject("mode allowedFunctionNames streamFunctionCallArguments", nil),
	}),
	"generationConfig": geminiObject(`candidateCount stopSequences maxOutputTokens temperature topP topK seed responseMimeType
		responseSchema responseJsonSchema responseFormat responseModalities responseLogprobs logprobs presencePenalty frequencyPenalty
		enableEnhancedCivicAnswers enableAffectiveDialog speechConfig mediaResolution imageConfig routingConfig modelSelectionConfig audioTimestamp audioTranscriptionConfig
		translationConfig`, map[string]*field{
		"thinkingConfig": geminiObject("includeThoughts thinkingBudget thinkingLevel", nil),
	}),
})

// violation is one error of a request.
type violation struct{ Field, Description string }

// maxViolations bounds how many errors are listed.
const maxViolations = 50

// violations reads a value and adds what the schema does not have.
func (f *field) violations(r *rawjson.Reader, path string, found *[]violation) {
	if len(*found) >= maxViolations || f.fields == nil && !f.text {
		r.Skip()
		return
	}
	add := func(field, format string, args ...any) {
		*found = append(*found, violation{field, fmt.Sprintf(format, args...)})
	}
	switch kind := r.Kind(); {
	case kind == '[' && f.list:
		one := *f
		one.list = false
		for i := range r.Elements() {
			one.violations(r, fmt.Sprintf("%s[%d]", path, i), found)
		}
	case kind == '[':
		r.Skip()
		before, name := cutLast(path)
		add(before, "Invalid JSON payload received. Unknown name %q%s: Proto field is not repeating, cannot start list.", name, atPath(before))
	case kind == 'n':
		r.Skip()
	case f.text && kind == '"':
		r.Skip()
	case f.text && kind == '{':
		r.Skip()
		add(path, "Invalid value at '%s' (TYPE_STRING), Starting an object on a scalar field", path)
	case f.text:
		add(path, "Invalid value at '%s' (TYPE_STRING), %s", path, clipped(string(r.Raw())))
	case kind != '{':
		add(path, "Invalid value at '%s', %s", path, clipped(string(r.Raw())))
	case f.dict:
		one := *f
		one.dict = false
		n := 0
		for range r.Fields() {
			one.violations(r, fmt.Sprintf("%s[%d].value", path, n), found)
			n++
		}
	default:
		for key := range r.Fields() {
			name := string(key)
			in, ok := f.fields[camelCase(name)]
			if !ok {
				r.Skip()
				if len(*found) < maxViolations {
					add(path, "Invalid JSON payload received. Unknown name %q%s: Cannot find field.", clipped(name), atPath(path))
				}
				continue
			}
			below := snakeCase(camelCase(name))
			if path != "" {
				below = path + "." + below
			}
			in.violations(r, below, found)
		}
	}
}

func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at '" + path + "'"
}

func cutLast(path string) (before, name string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// camelCase returns a name as JSON has it, for a name in snake case.
func camelCase(name string) string {
	if strings.IndexByte(name, '_') < 0 || len(name) > 100 {
		return name
	}
	parts := strings.Split(name, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

// snakeCase returns a name as paths in errors have it.
func snakeCase(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			b.WriteByte(c + 'a' - 'A')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unknownFields refuses a request with fields that the schema does not have.
func unknownFields(body []byte) *protocol.Refusal {
	var found []violation
	geminiRequest.violations(rawjson.NewReader(body), "", &found)
	if len(found) == 0 {
		return nil
	}
	var text []string
	details := []byte(`[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[`)
	for i, v := range found {
		text = append(text, v.Description)
		if i > 0 {
			details = append(details, ',')
		}
		details = append(details, '{')
		if v.Field != "" {
			details = append(append(append(details, `"field":`...), str(v.Field)...), ',')
		}
		details = append(append(append(details, `"description":`...), str(v.Description)...), '}')
	}
	return geminiRefused(strings.Join(text, "\n"), string(details)+"]}]")
}

// fieldOf returns a field of an object by its name in camel or snake case, nil if the
// object has none or null.
func fieldOf(obj []byte, name string) []byte {
	v := rawjson.Field(obj, name)
	if v == nil {
		v = rawjson.Field(obj, snakeCase(name))
	}
	return notNull(v)
}

// elementsOf returns the elements of a list, or the value in place of one.
func elementsOf(raw []byte) [][]byte {
	r := rawjson.NewReader(raw)
	if r.Kind() != '[' {
		if len(raw) == 0 {
			return nil
		}
		return [][]byte{raw}
	}
	var out [][]byte
	for range r.Elements() {
		out = append(out, r.Raw())
	}
	return out
}
