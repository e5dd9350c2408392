package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// destination is where a request goes that furl passes on without
// understanding it. If refusal is not nil, it goes nowhere, and the route has
// only the shape of the answer.
type destination struct {
	route   *route
	refusal *protocol.Refusal
}

// providerAPI is one of the two APIs that upstreams are configured for.
type providerAPI int

const (
	unknownAPI providerAPI = iota
	anthropicAPI
	openaiAPI
	sharedAPI // paths that both have
)

var ambiguous = &protocol.Refusal{
	Status:  http.StatusNotFound,
	Message: "furl: cannot tell whether this path is for Anthropic or OpenAI, and the request was not sent; put /anthropic or /openai before the path in the client's base URL, such as http://127.0.0.1:7410/openai/v1",
}

// destination decides by, in this order: the prefix /anthropic or /openai, the
// path, the configured upstreams, and the headers. A request that these leave
// open is refused, because its credential could reach the wrong provider.
func (g *Gateway) destination(r *http.Request) destination {
	api, path := prefixedAPI(r.URL.Path)
	if f := foreignOf(path); f != nil {
		return destination{&route{foreign: f}, &f.refusal}
	}
	if api == unknownAPI {
		api = g.unprefixedAPI(r, path)
	}
	switch {
	case api == anthropicAPI && g.up.Anthropic != nil:
		return destination{route: &route{codec: wire.For(furl.FormatAnthropic), up: g.up.Anthropic}}
	case api == anthropicAPI:
		return destination{&route{codec: wire.For(furl.FormatAnthropic)}, unserved("Anthropic", "anthropic")}
	case api == openaiAPI && g.up.OpenAI != nil:
		return destination{route: &route{codec: wire.For(furl.FormatChat), up: g.up.OpenAI}}
	case api == openaiAPI:
		return destination{&route{codec: wire.For(furl.FormatChat)}, unserved("OpenAI", "openai")}
	}
	return destination{&route{codec: wire.For(furl.FormatChat)}, ambiguous}
}

func unserved(vendor, key string) *protocol.Refusal {
	return &protocol.Refusal{
		Status:  http.StatusNotFound,
		Message: "furl: this is a path of " + vendor + "'s API, for which this gateway has no provider, and the request was not sent; set gateway." + key + " in the configuration, or --" + key,
	}
}

// prefixedAPI returns the API that a path names by its first segment, and the
// rest of the path.
func prefixedAPI(path string) (api providerAPI, rest string) {
	for prefix, api := range prefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok && prefix != "" && (rest == "" || rest[0] == '/') {
			return api, rest
		}
	}
	return unknownAPI, path
}

// unprefixedAPI returns the API of a request whose path has no prefix.
func (g *Gateway) unprefixedAPI(r *http.Request, path string) providerAPI {
	api := apiOfPath(path)
	switch {
	case api == anthropicAPI, api == openaiAPI:
		return api
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

// The first words of paths, after the version.
var (
	anthropicWords = strings.Fields(`messages complete organizations`)
	openaiWords    = strings.Fields(`chat completions responses embeddings moderations images audio videos uploads batches fine_tuning vector_stores
		assistants threads realtime conversations evals containers organization chatkit memories dashboard engines edits deployments`)
	sharedWords = strings.Fields(`models files skills agents`)
	// compatibleWords are those that servers compatible with OpenAI have
	// besides: llama.cpp and vLLM, then Mistral, then OpenRouter.
	compatibleWords = strings.Fields(`tokenize detokenize props slots health version rerank score pooling infill completion fim ocr key credits generation`)
	// Words after /api: of Claude Code, and of Ollama.
	claudeWords = strings.Fields(`hello event_logging oauth claude_code claude_cli`)
	ollamaWords = strings.Fields(`tags chat generate show version ps pull push create copy delete embed embeddings blobs v0`)
)

// apiOfPath returns the API that a path belongs to.
func apiOfPath(path string) providerAPI {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for len(segments) > 1 && segments[0] == "v1" {
		segments = segments[1:]
	}
	first, second := segments[0], ""
	if len(segments) > 1 {
		second = segments[1]
	}
	switch {
	case slices.Contains(anthropicWords, first), first == "api" && slices.Contains(claudeWords, second):
		return anthropicAPI
	case slices.Contains(openaiWords, first), slices.Contains(compatibleWords, first), first == "api" && slices.Contains(ollamaWords, second):
		return openaiAPI
	case slices.Contains(sharedWords, first):
		return sharedAPI
	}
	return unknownAPI
}

// apiOfHeader returns the API whose clients send such headers. A bearer token
// alone says nothing, unless its prefix names a vendor.
func (g *Gateway) apiOfHeader(h http.Header) providerAPI {
	shown := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return h.Get(name) != "" })
	}
	vendor := upstream.VendorOf(h.Get("Authorization"))
	switch {
	case shown("Anthropic-Version", "Anthropic-Beta"):
		return anthropicAPI
	case shown("Openai-Organization", "Openai-Project", "Openai-Beta"):
		return openaiAPI
	case vendor != "" && vendor == g.up.OpenAI.Vendor():
		return openaiAPI
	case shown("X-Api-Key"), vendor == "Anthropic":
		return anthropicAPI
	case shown("Api-Key"), vendor == "OpenAI":
		return openaiAPI
	}
	return unknownAPI
}

// foreignAPI is a provider's API that furl does not serve. Its requests are
// recognized by their paths and sent nowhere: another provider would get them,
// with their credential.
type foreignAPI struct {
	refusal protocol.Refusal
	// write answers with an error in the shape that the API's clients show.
	write func(w http.ResponseWriter, r *protocol.Refusal)
}

func newForeignAPI(format, cure string, write func(http.ResponseWriter, *protocol.Refusal)) *foreignAPI {
	return &foreignAPI{protocol.Refusal{
		Status:  http.StatusBadRequest, // not 404, for which clients try another model, nor 501, for which they try again
		Message: "furl: " + format + " is not supported yet, and the request was not sent to any provider; " + cure,
	}, write}
}

var (
	gemini = newForeignAPI("Gemini's format", "set this client to Google's address, or use Gemini by Chat Completions: furl serve --openai https://generativelanguage.googleapis.com/v1beta/openai", writeGoogleError)
	vertex = newForeignAPI("the format of Vertex AI", "set this client to Google's address", writeGoogleError)
	// Bedrock signs the name of the host, so that it could not be sent on.
	bedrock = newForeignAPI("the format of Amazon Bedrock", "set this client to the address of AWS", writeAWSError)
	cohere  = newForeignAPI("Cohere's format", "set this client to Cohere's address, or use Cohere by Chat Completions: furl serve --openai https://api.cohere.ai/compatibility/v1", writeCohereError)
)

// googleMethods end the paths of Google's APIs, after a colon.
var googleMethods = strings.Fields(`generateContent streamGenerateContent countTokens computeTokens embedContent batchEmbedContents
	asyncBatchEmbedContent batchGenerateContent generateAnswer generateText generateMessage predict predictLongRunning rawPredict streamRawPredict`)

// foreignOf returns the API of a path that furl does not serve, nil if it is
// none of those.
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
	case first == "v1beta1", first == "projects", first == "publishers":
		return vertex
	case slices.Contains(googleMethods, method), first == "v1beta", first == "v1alpha", first == "v1internal", strings.HasPrefix(first, "v1internal:"),
		first == "upload" && len(segments) > 1 && segments[1] == "v1beta":
		return gemini
	case first == "model" && len(segments) > 2 && slices.Contains([]string{"invoke", "invoke-with-response-stream", "converse", "converse-stream", "count-tokens"}, last):
		return bedrock
	case len(segments) == 1 && first == "chat", len(segments) == 2 && first == "v2" && last == "chat":
		return cohere
	}
	return nil
}

// writeGoogleError answers as Google's APIs do.
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

// writeAWSError answers as Amazon Bedrock does.
func writeAWSError(w http.ResponseWriter, r *protocol.Refusal) {
	kind := "ValidationException"
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		kind = "AccessDeniedException"
	}
	w.Header().Set("X-Amzn-Errortype", kind)
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

// writeCohereError answers as Cohere does.
func writeCohereError(w http.ResponseWriter, r *protocol.Refusal) {
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

func writeJSONError(w http.ResponseWriter, status int, body any) {
	apiHead(w, status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone if not
}
