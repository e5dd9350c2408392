package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// foreignAPI is a provider's API that furl does not serve. Its requests are
// recognized by their paths and sent nowhere: another provider would get them,
// with their credential.
type foreignAPI struct {
	refusal furl.Refusal
	// write answers with an error in the shape that the API's clients show.
	write func(w http.ResponseWriter, r *furl.Refusal)
}

func newForeignAPI(format, cure string, write func(http.ResponseWriter, *furl.Refusal)) *foreignAPI {
	return &foreignAPI{furl.Refusal{
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
func writeGoogleError(w http.ResponseWriter, r *furl.Refusal) {
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
func writeAWSError(w http.ResponseWriter, r *furl.Refusal) {
	kind := "ValidationException"
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		kind = "AccessDeniedException"
	}
	w.Header().Set("X-Amzn-Errortype", kind)
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

// writeCohereError answers as Cohere does.
func writeCohereError(w http.ResponseWriter, r *furl.Refusal) {
	writeJSONError(w, r.Status, map[string]any{"message": r.Message})
}

func writeJSONError(w http.ResponseWriter, status int, body any) {
	apiHead(w, status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone if not
}
