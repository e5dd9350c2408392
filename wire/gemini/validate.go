package gemini

import (
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// topFields are the fields of a request besides those in names
// (ai.google.dev/api/generate-content, and for labels Vertex AI, 2026-11).
var topFields = []string{"safetySettings", "labels", "modelArmorConfig", "serviceTier", "store", "generateContentRequest"}

// Validate checks a request against the provider's rules that furl knows, which
// docs/internals/gemini.md lists. It returns nil or a *protocol.Refusal with the provider's
// text. Like the provider it accepts a request that begins with results without their calls,
// and unlike it repeated results: clients send both.
func (codec) Validate(req *protocol.Request, m furl.Model) error {
	v := validator{req: req}
	for _, check := range []func() *protocol.Refusal{v.fields, v.contents, v.calls, func() *protocol.Refusal { return v.signatures(m.ID) }} {
		if r := check(); r != nil {
			return r
		}
	}
	return nil
}

type validator struct{ req *protocol.Request }

func unknownName(name, at string) *protocol.Refusal {
	if at != "" {
		at = " at '" + at + "'"
	}
	return refuse("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", name, at)
}

// fields checks the names of the request's fields, and what excludes each other.
func (v *validator) fields() (refusal *protocol.Refusal) {
	cached, excluded := false, false
	r := rawjson.NewReader(v.req.Fields())
	for key := range fields(r, nil) {
		switch key {
		case "contents", "generationConfig", "model":
		case "cachedContent":
			cached = r.Kind() == '"'
		case "tools", "toolConfig", "systemInstruction":
			excluded = excluded || r.Kind() != 'n'
		default:
			known := false
			for _, name := range topFields {
				known = known || key == name || key == snake(name)
			}
			if !known && refusal == nil {
				refusal = unknownName(key, "")
			}
		}
	}
	if refusal == nil && cached && excluded {
		refusal = refuse("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.")
	}
	return refusal
}

// contents checks each content by itself.
func (v *validator) contents() *protocol.Refusal {
	if len(v.req.Messages) == 0 {
		return refuse("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i := range v.req.Messages {
		m := &v.req.Messages[i]
		at := "contents[" + strconv.Itoa(i) + "]"
		if !m.Role.Known() || m.Role == furl.RoleSystem || m.Role == furl.RoleDeveloper {
			return refuse("Please use a valid role: user, model.")
		}
		r := rawjson.NewReader(m.Raw)
		for key := range fields(r, nil) {
			if key != "role" && key != "parts" {
				return unknownName(key, at)
			}
		}
		if len(m.Blocks) == 0 {
			return refuse("* GenerateContentRequest.%s.parts: contents.parts must not be empty.\n", at)
		}
		for k, raw := range rawjson.Elements(value(m.Raw, "parts")) {
			p := readPart(rawjson.NewReader(raw), nil)
			part := at + ".parts[" + strconv.Itoa(k) + "]"
			switch {
			case p.unknown != "":
				return unknownName(p.unknown, part)
			case p.data == "" && len(p.signature.Inside()) == 0:
				return refuse("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", part)
			case p.data == "functionCall" && text(p.value.Raw, "name") == "", p.data == "functionResponse" && text(p.value.Raw, "name") == "":
				return refuse("* GenerateContentRequest.%s.%s.name: Name cannot be empty.\n", part, snake(p.data))
			}
		}
	}
	return nil
}

// calls checks that each content with calls follows the user, and has its results in the next
// content. Contents of the model in a row are one reply.
func (v *validator) calls() *protocol.Refusal {
	msgs := v.req.Messages
	open := 0 // calls of the reply before
	for i := 0; i < len(msgs); i++ {
		m := &msgs[i]
		if m.Role == furl.RoleAssistant {
			first := i
			for ; i < len(msgs) && msgs[i].Role == furl.RoleAssistant; i++ {
				open += count(&msgs[i], furl.KindCall)
			}
			i--
			if open > 0 && first == 0 {
				return refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
			}
			continue
		}
		results := count(m, furl.KindResult)
		switch {
		case results == 0 && open == 0:
		case results != open && open > 0:
			return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		case open == 0 && i > 0:
			return refuse("Please ensure that function response turn comes immediately after a function call turn.")
		}
		open = 0
	}
	return nil
}

func count(m *furl.Message, kind furl.Kind) (n int) {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == kind {
			n++
		}
	}
	return n
}

// signatures checks that the first call of each reply since the user last wrote has a
// signature, which models since Gemini 3 demand
// (ai.google.dev/gemini-api/docs/thought-signatures, 2026-11).
func (v *validator) signatures(model string) *protocol.Refusal {
	if generation(model) < 3 && generation(v.req.Model) < 3 {
		return nil
	}
	msgs := v.req.Messages
	from := 0
	for i := range msgs {
		if msgs[i].Role != furl.RoleAssistant && !onlyResults(&msgs[i]) {
			from = i
		}
	}
	called := false // in this reply
	for i := from; i < len(msgs); i++ {
		if msgs[i].Role != furl.RoleAssistant {
			called = false
			continue
		}
		for k := range msgs[i].Blocks {
			b := &msgs[i].Blocks[k]
			if b.Kind != furl.KindCall {
				continue
			}
			if !called && b.Signature == 0 {
				return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", b.Name, i+1)
			}
			called = true
		}
	}
	return nil
}

// generation returns the number after "gemini-" in a model's name, 0 if there is none.
func generation(model string) (n int) {
	_, rest, ok := strings.Cut(model, "gemini-")
	if !ok {
		return 0
	}
	for i := 0; i < len(rest) && '0' <= rest[i] && rest[i] <= '9' && n < 1000; i++ {
		n = 10*n + int(rest[i]-'0')
	}
	return n
}
