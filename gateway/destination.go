package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// destination is where furl forwards a request. If refusal is not nil, the request is
// refused, and the route only determines the shape of the error.
type destination struct {
	route   *route
	refusal *protocol.Refusal
	// url is the URL of the request without a prefix that names the provider.
	url *url.URL
	// model is set for the path of requests to models.
	model bool
}

// providerAPI is one of the APIs that have a configured upstream.
type providerAPI int

const (
	unknownAPI providerAPI = iota
	anthropicAPI
	openaiAPI
	geminiAPI
	sharedAPI // paths that several have
)

var ambiguousPath = &protocol.Refusal{
	Status:  http.StatusNotFound,
	Message: "furl: cannot tell whether this path is for Anthropic, OpenAI or Google, and the request was not sent; put /anthropic, /openai or /gemini before the path in the client's base URL, such as http://127.0.0.1:7410/openai/v1",
}

// prefixes are the path prefixes that name a provider.
var prefixes = map[string]providerAPI{"/anthropic": anthropicAPI, "/openai": openaiAPI, "/gemini": geminiAPI}

// destination returns the destination of a request. It considers, in this order:
// the prefix /anthropic, /openai or /gemini, the path, the header chatgpt-account-id, the
// configured upstreams, and the other headers. A request that stays ambiguous is refused,
// because its credential could reach the wrong provider.
func (g *Gateway) destination(r *http.Request) destination {
	prefix, path := cutPrefix(r.URL.Path)
	api := prefixes[prefix]
	rt := &route{}
	rt.codec, rt.endpoint = wire.ForPath(path, r.URL.RawQuery)
	to := destination{route: rt, url: providerURL(r.URL, prefix, rt), model: rt.codec != nil}
	if !to.model {
		if f := foreignOf(path); f != nil {
			rt.foreign, to.refusal = f, &f.refusal
			return to
		}
	}
	switch {
	case rt.codec != nil && rt.codec.Format() == furl.FormatGemini, !to.model && apiOfPath(path) == geminiAPI: // whatever the prefix: no other provider may get the key
		api = geminiAPI
	case api != unknownAPI:
	case !to.model:
		api = g.unprefixedAPI(r, path)
	case rt.codec.Format() == furl.FormatAnthropic:
		api = anthropicAPI
	default:
		api = openaiAPI
	}
	switch {
	case api == geminiAPI && g.up.Gemini == nil:
		to.refusal = noUpstream("Google", "gemini")
	case api == geminiAPI && isVertex(path) && g.up.Gemini.Address() == geminiAddress:
		to.refusal = noVertex
	case api == geminiAPI:
		rt.up = g.up.Gemini
	case api == anthropicAPI && g.up.Anthropic != nil:
		rt.up = g.up.Anthropic
	case api == anthropicAPI:
		to.refusal = noUpstream("Anthropic", "anthropic")
	case api == openaiAPI:
		rt.up, to.refusal = g.up.openAI(r.Header)
	default:
		to.refusal = ambiguousPath
	}
	if !to.model { // for errors
		rt.codec = wire.For(furl.FormatChat)
		switch api {
		case anthropicAPI:
			rt.codec = wire.For(furl.FormatAnthropic)
		case geminiAPI:
			rt.codec = wire.For(furl.FormatGemini)
		}
	}
	return to
}

func noUpstream(vendor, key string) *protocol.Refusal {
	return &protocol.Refusal{
		Status:  http.StatusNotFound,
		Message: "furl: no provider is configured for this path of " + vendor + "'s API, and the request was not sent; set gateway." + key + " in the configuration, or --" + key,
	}
}

// cutPrefix returns the prefix of a path that names a provider, "" if there is none, and
// the rest of the path.
func cutPrefix(path string) (prefix, rest string) {
	for prefix := range prefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return prefix, rest
		}
	}
	return "", path
}

// unprefixedAPI returns the API of a request whose path has no prefix.
func (g *Gateway) unprefixedAPI(r *http.Request, path string) providerAPI {
	api := apiOfPath(path)
	switch {
	case api == anthropicAPI, api == openaiAPI, api == geminiAPI:
		return api
	case g.up.Gemini != nil && hasGoogleKey(r):
		return geminiAPI
	case r.Header.Get(headerChatGPT) != "":
		return openaiAPI
	case g.up.OpenAI == nil:
		return anthropicAPI
	case g.up.Anthropic == nil:
		return openaiAPI
	}
	if marked := g.apiOfHeader(r.Header); marked != unknownAPI {
		return marked
	}
	switch {
	case r.Method == http.MethodHead && strings.Trim(path, "/") == "": // Claude Code, before 2.1
		return anthropicAPI
	case api == sharedAPI: // Anthropic's clients send its version with each request
		return openaiAPI
	case g.up.Anthropic.Address() == g.up.OpenAI.Address():
		return openaiAPI
	}
	return unknownAPI
}

// First segments of paths, after the version.
var (
	anthropicSegments = strings.Fields(`messages complete organizations`)
	openaiSegments    = strings.Fields(`chat completions responses embeddings moderations images audio videos uploads batches fine_tuning vector_stores
		assistants threads realtime conversations evals containers organization chatkit memories dashboard engines edits deployments`)
	sharedSegments = strings.Fields(`models files skills agents`)
	// geminiSegments are those of the Gemini API and of Vertex AI.
	geminiSegments = strings.Fields(`cachedContents tunedModels corpora interactions fileSearchStores generatedFiles operations projects publishers`)
	// compatibleSegments are the additional segments of OpenAI-compatible servers:
	// llama.cpp and vLLM, then Mistral, then OpenRouter.
	compatibleSegments = strings.Fields(`tokenize detokenize props slots health version rerank score pooling infill completion fim ocr key credits generation`)
	// lastSegments are the last segments of paths that furl does not decode, with any
	// base URL.
	lastSegments = strings.Fields(`completions embeddings models`)
	// Second segments after /api: those of Claude Code, and those of Ollama.
	claudeSegments = strings.Fields(`hello event_logging oauth claude_code claude_cli`)
	ollamaSegments = strings.Fields(`tags chat generate show version ps pull push create copy delete embed embeddings blobs v0`)
)

// apiOfPath returns the API that a path without prefix belongs to. What precedes the
// version, as in /api/v1/models, does not matter, nor what precedes a last segment that
// all base URLs have.
func apiOfPath(path string) providerAPI {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for len(segments) > 1 && segments[0] == "v1" {
		segments = segments[1:]
	}
	first, last := segments[0], segments[len(segments)-1]
	if first == "api" && len(segments) > 1 {
		switch second := segments[1]; {
		case slices.Contains(claudeSegments, second):
			return anthropicAPI
		case slices.Contains(ollamaSegments, second):
			return openaiAPI
		}
	}
	if api := apiOfSegment(first); api != unknownAPI {
		return api
	}
	if isGoogleCompatible(segments) {
		return openaiAPI
	}
	if _, method, ok := strings.Cut(last, ":"); ok && slices.Contains(googleMethods, method) || strings.HasPrefix(first, "v1beta") || first == "v1alpha" ||
		(first == "upload" || first == "download") && len(segments) > 1 && strings.HasPrefix(segments[1], "v1") {
		return geminiAPI
	}
	for i, s := range segments[:len(segments)-1] {
		if isVersion(s) {
			if api := apiOfSegment(segments[i+1]); api != unknownAPI {
				return api
			}
		}
	}
	if slices.Contains(lastSegments, last) {
		return apiOfSegment(last)
	}
	return unknownAPI
}

// apiOfSegment returns the API that has paths with this segment after the version.
func apiOfSegment(s string) providerAPI {
	switch {
	case slices.Contains(anthropicSegments, s):
		return anthropicAPI
	case slices.Contains(geminiSegments, s):
		return geminiAPI
	case slices.Contains(openaiSegments, s), slices.Contains(compatibleSegments, s):
		return openaiAPI
	case slices.Contains(sharedSegments, s):
		return sharedAPI
	}
	return unknownAPI
}

// isVersion reports whether a segment of a path is the version of an API, such as v4.
func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// isGoogleCompatible reports whether a path is one of Gemini's OpenAI-compatible API.
// Source: https://ai.google.dev/gemini-api/docs/openai
func isGoogleCompatible(segments []string) bool {
	return len(segments) > 2 && segments[0] == "v1beta" && segments[1] == "openai"
}

// hasGoogleKey reports whether a request has a key or the client of a Google API. The
// parameter key is a credential too.
func hasGoogleKey(r *http.Request) bool {
	return r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("X-Goog-Api-Client") != "" || strings.HasPrefix(r.URL.RawQuery, "key=") || strings.Contains(r.URL.RawQuery, "&key=")
}

// geminiAddress is the address of the Gemini API, which does not serve Vertex AI.
const geminiAddress = "https://generativelanguage.googleapis.com"

var noVertex = &protocol.Refusal{
	Status:  http.StatusNotFound,
	Message: "furl: this path is Vertex AI's, but the configured provider is the Gemini API, and the request was not sent; set gateway.gemini or --gemini to the address of Vertex AI, such as https://aiplatform.googleapis.com",
}

// isVertex reports whether a path is one of Vertex AI.
func isVertex(path string) bool {
	return strings.Contains(path, "/projects/") || strings.Contains(path, "/publishers/")
}

// apiOfHeader returns the API whose clients send these headers. A bearer token
// alone decides only if its prefix identifies a vendor.
func (g *Gateway) apiOfHeader(h http.Header) providerAPI {
	hasAny := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return h.Get(name) != "" })
	}
	vendor := upstream.VendorOf(h.Get("Authorization"))
	switch {
	case hasAny("Anthropic-Version", "Anthropic-Beta"):
		return anthropicAPI
	case hasAny("Openai-Organization", "Openai-Project", "Openai-Beta"):
		return openaiAPI
	case vendor != "" && vendor == g.up.OpenAI.Vendor():
		return openaiAPI
	case hasAny("X-Api-Key"), vendor == "Anthropic":
		return anthropicAPI
	case hasAny("Api-Key"), vendor == "OpenAI":
		return openaiAPI
	}
	return unknownAPI
}

// foreignAPI is a provider's API that furl does not support. Its requests are
// recognized by their paths and refused: otherwise another provider would get
// them with their credential.
type foreignAPI struct {
	refusal protocol.Refusal
	// write writes an error in the shape that the API's clients display.
	write func(w http.ResponseWriter, r *protocol.Refusal)
}

func newForeignAPI(format, cure string, write func(http.ResponseWriter, *protocol.Refusal)) *foreignAPI {
	return &foreignAPI{protocol.Refusal{
		Status:  http.StatusBadRequest, // on 404 clients try another model, on 501 they retry
		Message: "furl: " + format + " is not supported yet, and the request was not sent to any provider; " + cure,
	}, write}
}

var (
	codeAssist = newForeignAPI("the format of Gemini Code Assist", "use an API key of Gemini instead of a login with Google, or set this client to Google's address", writeGoogleError)
	vertex     = newForeignAPI("the format of other models on Vertex AI", "set this client to Google's address", writeGoogleError)
	// Bedrock's signature covers the host name, so a forwarded request is invalid.
	bedrock = newForeignAPI("the format of Amazon Bedrock", "set this client to the address of AWS", writeAWSError)
	cohere  = newForeignAPI("Cohere's format", "set this client to Cohere's address, or use Cohere by Chat Completions: furl serve --openai https://api.cohere.ai/compatibility/v1", writeCohereError)
)

// googleMethods are the methods at the end of Google's paths, after a colon.
var googleMethods = strings.Fields(`generateContent streamGenerateContent countTokens computeTokens embedContent batchEmbedContents
	asyncBatchEmbedContent batchGenerateContent generateAnswer generateText generateMessage predict predictLongRunning rawPredict streamRawPredict`)

// foreignOf returns the unsupported API that a path belongs to, or nil.
func foreignOf(path string) *foreignAPI {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for len(segments) > 1 && segments[0] == "v1" {
		segments = segments[1:]
	}
	first, last := segments[0], segments[len(segments)-1]
	_, method, _ := strings.Cut(last, ":")
	if i := strings.LastIndex(method, ":"); i >= 0 {
		method = method[i+1:]
	}
	switch {
	case method == "rawPredict", method == "streamRawPredict", slices.Contains(segments, "publishers") && !slices.Contains(segments, "google") && slices.Contains(googleMethods, method):
		return vertex
	case strings.HasPrefix(first, "v1internal"):
		return codeAssist
	case first == "model" && len(segments) > 2 && slices.Contains([]string{"invoke", "invoke-with-response-stream", "converse", "converse-stream", "count-tokens"}, last):
		return bedrock
	case len(segments) == 1 && first == "chat", len(segments) == 2 && first == "v2" && last == "chat":
		return cohere
	}
	return nil
}

// writeGoogleError writes an error in the format of Google's APIs.
func writeGoogleError(w http.ResponseWriter, r *protocol.Refusal) {
	status := "UNKNOWN"
	switch r.Status {
	case http.StatusBadRequest:
		status = "FAILED_PRECONDITION"
	case http.StatusUnauthorized:
		status = "UNAUTHENTICATED"
	case http.StatusForbidden:
		status = "PERMISSION_DENIED"
	}
	writeJSONError(w, r.Status, map[string]any{"error": map[string]any{"code": r.Status, "message": r.Message, "status": status}})
}

// writeAWSError writes an error in the format of Amazon Bedrock.
func writeAWSError(w http.ResponseWriter, r *protocol.Refusal) {
	kind := "ValidationException"
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		kind = "AccessDeniedException"
	}
	w.Header().Set("X-Amzn-Errortype", kind)
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

// writeCohereError writes an error in the format of Cohere's API.
func writeCohereError(w http.ResponseWriter, r *protocol.Refusal) {
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

func writeJSONError(w http.ResponseWriter, status int, body any) {
	writeAPIHeader(w, status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
