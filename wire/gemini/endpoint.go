package gemini

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/protocol"
)

// The methods of a model that furl decodes. They follow a colon at the end of the path
// (ai.google.dev/api/generate-content, cloud.google.com/vertex-ai/generative-ai/docs/reference/rest).
const (
	methodGenerate = "generateContent"
	methodStream   = "streamGenerateContent"
	methodCount    = "countTokens"
)

// Endpoint implements wire.API: paths end in models/MODEL:METHOD, or in endpoints/ID:METHOD of a
// model that was tuned on Vertex AI. What precedes it is the version, and on Vertex AI the
// project, the location and the publisher.
func (codec) Endpoint(path, query string) (e protocol.Endpoint, ok bool) {
	at := strings.LastIndexByte(path, '/')
	name, method, found := strings.Cut(path[at+1:], ":")
	if at < 0 || !found || name == "" {
		return e, false
	}
	switch {
	case strings.EqualFold(method, methodGenerate):
	case strings.EqualFold(method, methodStream):
		e.Stream = true
		e.List = !asksForEvents(query)
	case strings.EqualFold(method, methodCount):
		e.Count = true
	default:
		return e, false
	}
	before := strings.LastIndexByte(path[:at], '/')
	collection := path[before+1 : at]
	publisher := path[:max(0, before)]
	switch {
	case strings.EqualFold(collection, "models"):
		if p := strings.LastIndex(publisher, "publishers/"); p >= 0 && publisher[p:] != "publishers/google" {
			return e, false // another format
		}
		e.Model = name
	case collection == "tunedModels", collection == "endpoints":
		e.Model = collection + "/" + name
	default:
		return e, false
	}
	e.Prefix = publisher
	return e, true
}

// asksForEvents reports whether a query has alt=sse. Without it the reply is a list. Google
// accepts $alt too (cloud.google.com/apis/docs/system-parameters).
func asksForEvents(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		switch parameter {
		case "alt=sse", "$alt=sse", "%24alt=sse":
			return true
		}
	}
	return false
}

// RequestPath implements wire.API.
func (codec) RequestPath(model string, stream bool) string {
	if !stream {
		return "/v1beta/" + resource(model) + ":" + methodGenerate
	}
	return "/v1beta/" + resource(model) + ":" + methodStream + "?alt=sse"
}

// WithModel implements wire.API.
func (codec) WithModel(path, model string) string {
	method := strings.LastIndexByte(path, ':')
	name := strings.LastIndexByte(path, '/')
	if name < 0 || method < name {
		return path
	}
	collection := strings.LastIndexByte(path[:name], '/')
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return path[:collection+1] + model + path[method:]
}

// resource returns the name of a model as paths have it.
func resource(model string) string {
	if collection, name, ok := strings.Cut(model, "/"); ok {
		return collection + "/" + escape(name)
	}
	return "models/" + escape(model)
}

// escape escapes a segment of a path.
func escape(segment string) string {
	const plain = "-._~!$&'()*+,;=@" // a colon separates the method
	var b strings.Builder
	for i := range len(segment) {
		c := segment[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// modelName returns the name of a model without its collection.
func modelName(resource string) string { return strings.TrimPrefix(resource, "models/") }
