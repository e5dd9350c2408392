package openai

import (
	"bytes"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var (
	_ protocol.ReplyCodec = chat{}
	_ protocol.ReplyCodec = responses{}
)

// Limits of a streamed reply.
const (
	maxReply  = 64 << 20 // bytes of all data together
	maxItems  = 10_000
	maxPieces = 1000 // calls, content parts
	maxExtra  = 64   // unknown fields
)

// maxErrorText bounds how much is kept of an error that is not JSON.
const maxErrorText = 4 << 10

// refused records an error body, or an event that is an error (status 0).
func refused(reply *protocol.Reply, status int, body []byte) {
	var e apiError
	if len(body) > maxErrorBody {
		body = errorOf(body)
	}
	if len(body) <= maxErrorBody {
		e.read(rawjson.NewReader(body), 0)
	}
	if e.message == "" && rawjson.NewReader(body).Kind() != '{' {
		e.message = strings.ToValidUTF8(string(body[:min(len(body), maxErrorText)]), "\uFFFD")
	}
	if e.typ == "error" || strings.HasPrefix(e.typ, "response.") {
		e.typ = "" // the type of the event, not of the error
	}
	overflowStatus := status
	if status == 0 {
		status, overflowStatus = e.status(), 200
	}
	if e.typ == "" {
		e.typ = typeOf(status)
	}
	reply.Complete = false
	reply.Refusal = &protocol.Refusal{Status: status, Type: e.typ, Code: e.code, Param: e.param, Message: e.message}
	if reported, limit, ok := ParseOverflow(overflowStatus, body); ok {
		reply.Overflow = &protocol.Overflow{Tokens: reported, Limit: limit}
	}
	reply.ThinkingRefused = parseThinkingRefused(&e)
}

// errorOf returns the error member of a large body: a failed response repeats
// its instructions and tools, which may be longer than any error.
func errorOf(body []byte) []byte {
	found := body
	pick := func(r *rawjson.Reader) {
		if raw := r.Raw(); len(raw) < len(body) && string(raw) != "null" {
			found = append(append([]byte(`{"error":`), raw...), '}')
		}
	}
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return body
	}
	for key := range r.Fields() {
		switch string(key) {
		case "error":
			pick(r)
		case "response":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.Fields() {
				if string(key) == "error" {
					pick(r)
				}
			}
		}
	}
	return found
}

// status returns the HTTP status that an error in a stream would have had.
func (e *apiError) status() int {
	if e.number >= 400 && e.number < 600 {
		return e.number
	}
	for _, s := range []string{e.code, e.typ} {
		switch s {
		case overflowCode, "invalid_request_error", "invalid_prompt", "exceed_context_size_error":
			return 400
		case "authentication_error", "invalid_api_key":
			return 401
		case "permission_error":
			return 403
		case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota", "requests", "tokens":
			return 429
		case "server_is_overloaded", "overloaded_error", "slow_down":
			return 503
		}
	}
	return 500
}

// typeOf returns the error type for a status.
func typeOf(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 429:
		return "rate_limit_error"
	case status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}

// errorBody is ErrorBody for a refusal that may lack its type. The provider
// returns the request id in a header only.
func errorBody(r *protocol.Refusal) []byte {
	if r.Type == "" {
		typed := *r
		typed.Type = typeOf(r.Status)
		r = &typed
	}
	return ErrorBody(r)
}

// ErrorBody returns the body of a response that refuses a request.
func (chat) ErrorBody(r *protocol.Refusal, _ string) []byte { return errorBody(r) }

// ErrorBody returns the body of a response that refuses a request.
func (responses) ErrorBody(r *protocol.Refusal, _ string) []byte { return errorBody(r) }

// ErrorEvent returns an error event for use within a stream: the same body as
// data.
func (chat) ErrorEvent(r *protocol.Refusal) (event string, data []byte) { return "", errorBody(r) }

// ErrorEvent returns an error event for use within a stream. Its
// sequence_number is 0; see editEvent.
func (responses) ErrorEvent(r *protocol.Refusal) (event string, data []byte) {
	code := r.Code
	if code == "" {
		if code = r.Type; code == "" {
			code = typeOf(r.Status)
		}
	}
	param := []byte("null")
	if r.Param != "" {
		param = quote(r.Param)
	}
	out := appendField([]byte{'{'}, "type", quote("error"))
	out = appendField(out, "code", quote(code))
	out = appendField(out, "message", quote(r.Message))
	out = appendField(out, "param", param)
	return "error", append(appendField(out, "sequence_number", []byte{'0'}), '}')
}

// filled records that prompt and output together filled the window.
func filled(reply *protocol.Reply) {
	n := reply.Usage.Prompt() + reply.Usage.Output
	reply.Overflow = &protocol.Overflow{Tokens: n, Limit: n}
}

// usageOf decodes a usage object; a value of another type is ignored.
func usageOf(reply *protocol.Reply, raw []byte) {
	if u, err := DecodeUsage(raw); err == nil && u != (furl.Usage{}) {
		reply.Usage = u
	}
}

// isDone reports whether data is the end marker of a stream.
func isDone(data []byte) bool { return string(data) == "[DONE]" }

func trim(data []byte) []byte { return bytes.TrimSpace(data) }
