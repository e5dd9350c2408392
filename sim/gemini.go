package sim

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// gemini is Google's generateContent, on the Gemini API or on Vertex AI. The sim decodes
// and checks it by itself, so that it does not share a mistake with the gateway.
// Sources: https://ai.google.dev/api/generate-content and
// https://ai.google.dev/gemini-api/docs/thought-signatures, and errors in reports of clients.
type gemini struct{}

func (gemini) codec() decoder { return geminiCodec{} }

func (gemini) authenticate(r *http.Request) *protocol.Refusal {
	if r.Header.Get("x-goog-api-key") != "" || r.URL.Query().Get("key") != "" || strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return nil
	}
	return &protocol.Refusal{Status: http.StatusForbidden, Type: "PERMISSION_DENIED",
		Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
}

// geminiRefused returns a refusal with status 400. Param has the details, as JSON.
func geminiRefused(message, details string) *protocol.Refusal {
	return &protocol.Refusal{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: message, Param: details}
}

// geminiStatus returns Google's name of an HTTP status.
// Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
func geminiStatus(status int) string {
	switch {
	case status == 401:
		return "UNAUTHENTICATED"
	case status == 403:
		return "PERMISSION_DENIED"
	case status == 404:
		return "NOT_FOUND"
	case status == 409:
		return "ABORTED"
	case status == 429:
		return "RESOURCE_EXHAUSTED"
	case status == 499:
		return "CANCELLED"
	case status == 503 || status == 529:
		return "UNAVAILABLE"
	case status == 504:
		return "DEADLINE_EXCEEDED"
	case status >= 500:
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// errorBody returns an error in Google's form. The status of a refusal that another part
// of the sim made is in another provider's words.
func (gemini) errorBody(r *protocol.Refusal, _ string) []byte {
	status := r.Type
	if status != strings.ToUpper(status) {
		status = geminiStatus(r.Status)
	}
	out := fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":%s`, r.Status, str(r.Message), str(status))
	if strings.HasPrefix(r.Param, "[") {
		out = fmt.Appendf(out, `,"details":%s`, r.Param)
	}
	return append(out, "}}\n"...)
}

func (gemini) undecoded(err error) *protocol.Refusal {
	if r, ok := err.(*protocol.Refusal); ok {
		return r
	}
	return geminiRefused("Invalid JSON payload received. "+err.Error(), "")
}

func (gemini) unknownModel(name string) *protocol.Refusal {
	return &protocol.Refusal{Status: http.StatusNotFound, Type: "NOT_FOUND",
		Message: "models/" + name + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
}

// expand takes the request out of a countTokens request, and reads the fields that the
// decoder does not.
func (gemini) expand(c *call, body []byte) ([]byte, error) {
	if c.route.count != nil {
		if inner := fieldOf(body, "generateContentRequest"); inner != nil {
			body = inner
		}
	}
	if !c.sim.opts.AnyField && rawjson.Check(body) == nil {
		if r := unknownFields(body); r != nil {
			return nil, r
		}
	}
	f := &c.facts
	config := fieldOf(body, "generationConfig")
	for _, raw := range elementsOf(fieldOf(config, "stopSequences")) {
		if s, ok := rawjson.NewReader(raw).String(); ok && len(f.stops) < maxStops {
			f.stops = append(f.stops, s)
		}
	}
	thinking := fieldOf(config, "thinkingConfig")
	f.omitted = string(fieldOf(thinking, "includeThoughts")) != "true"
	if raw := fieldOf(thinking, "thinkingBudget"); string(raw) == "0" {
		f.thinking = "disabled"
	}
	f.toolChoice = strings.ToUpper(stringField(fieldOf(fieldOf(body, "toolConfig"), "functionCallingConfig"), "mode"))
	return body, nil
}

func (gemini) build(c *call) { buildOpenAI(c) }

func (gemini) overflow(c *call, tokens int) *protocol.Refusal {
	return geminiRefused(fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", tokens, c.window()), "")
}

// overflowed returns a first piece and then the error.
func (g gemini) overflowed(c *call, a *answer) []event {
	return append(g.events(c, a)[:1], event{data: g.errorBody(g.overflow(c, c.window()+1), "")})
}

func (gemini) statusError(status int) *protocol.Refusal {
	r := &protocol.Refusal{Status: status, Type: geminiStatus(status)}
	switch {
	case status == 401:
		r.Message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
	case status == 403:
		r.Message = "The caller does not have permission"
	case status == 429:
		r.Message = "Resource has been exhausted (e.g. check quota)."
	case status == 503 || status == 529:
		r.Message = "The model is overloaded. Please try again later."
	case status == 504:
		r.Message = "The service is temporarily unable to finish processing within the deadline."
	case status >= 500:
		r.Message = "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
	default:
		r.Message = http.StatusText(status)
	}
	return r
}

func (g gemini) streamError(*call, int) event {
	return event{data: g.errorBody(g.statusError(http.StatusServiceUnavailable), "")}
}

// ping is a comment: Google sends none, but proxies do.
func (gemini) ping() []byte { return []byte(": ping\n\n") }

func (gemini) newID(c *call) string { return c.newID("", 22) }

// callID returns an id in Google's style: eight letters and digits.
func (gemini) callID(c *call) string { return strings.ToLower(c.newID("", 8)) }

// thinks is true unless thinking is off. Thoughts count even if the request does not ask to
// see them.
func (gemini) thinks(c *call) bool { return c.facts.thinking != "disabled" }

// count answers a countTokens request.
func (gemini) count(c *call, tokens int) []byte {
	return fmt.Appendf(nil, `{"totalTokens":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]}`, tokens, tokens)
}

// onVertex reports whether the request is to a path of Vertex AI.
func (c *call) onVertex() bool { return strings.Contains(c.r.URL.Path, "/publishers/google/") }

// geminiGeneration returns the generation of a model by its name, such as 3 for
// gemini-3.1-pro-preview; 0 if it has none.
func geminiGeneration(model string) int {
	name, ok := strings.CutPrefix(model, "gemini-")
	if !ok || name == "" || name[0] < '1' || name[0] > '9' {
		return 0
	}
	return int(name[0] - '0')
}

// geminiRoute returns the route of a path of the Gemini API or of Vertex AI, nil for other
// paths: a model's method below a version, or below a project, a location and a publisher, or
// with an API key below the publisher. A model whose name is gemini's may be asked for.
func geminiRoute(r *http.Request, path string) *route {
	rest, ok := strings.CutPrefix(path, "/v1beta1/")
	if !ok {
		if rest, ok = strings.CutPrefix(path, "/v1beta/"); !ok {
			rest, ok = strings.CutPrefix(path, "/v1/")
		}
	}
	if !ok {
		return nil
	}
	if project, inner, ok := strings.Cut(rest, "/publishers/google/"); ok && strings.HasPrefix(project, "projects/") && strings.Count(project, "/") == 3 {
		rest = inner
	} else if inner, ok := strings.CutPrefix(rest, "publishers/google/"); ok {
		rest = inner
	}
	google := strings.HasPrefix(path, "/v1beta") || strings.Contains(path, "/publishers/google/") || r.Header.Get("x-goog-api-key") != "" || r.Header.Get("x-goog-api-client") != ""
	if rest == "models" && google {
		return &route{method: http.MethodGet, api: gemini{}, raw: listModels}
	}
	name, ok := strings.CutPrefix(rest, "models/")
	if !ok {
		return nil
	}
	name, method, ok := strings.Cut(name, ":")
	if !ok {
		if !google {
			return nil
		}
		return &route{method: http.MethodGet, api: gemini{}, raw: func(c *call) error { return c.oneModel(name) }}
	}
	rt := &route{method: http.MethodPost, api: gemini{}, model: name}
	switch method {
	case "generateContent":
	case "streamGenerateContent":
		rt.stream, rt.array = true, r.URL.Query().Get("alt") != "sse"
	case "countTokens":
		rt.count = gemini{}.count
	default:
		rt.missing = true
	}
	return rt
}

// geminiModelShape is a model in the list of models.
// Source: https://ai.google.dev/api/models
func geminiModelShape(id string, window int, m *furl.Model) []byte {
	return fmt.Appendf(nil, `{"name":%s,"version":"001","displayName":%s,"description":"","inputTokenLimit":%d,"outputTokenLimit":%d,"supportedGenerationMethods":["generateContent","countTokens"],"temperature":1,"topP":0.95,"topK":64,"maxTemperature":2,"thinking":true}`,
		str("models/"+id), str(id), window, m.MaxOutput)
}
