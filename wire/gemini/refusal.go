package gemini

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// The statuses of Google's errors, by their HTTP status (google.rpc.Code,
// github.com/googleapis/googleapis, google/rpc/code.proto). The first of a status is that of
// errors without one.
var statuses = []struct {
	code   int
	status string
}{
	{400, "INVALID_ARGUMENT"},
	{400, "FAILED_PRECONDITION"},
	{400, "OUT_OF_RANGE"},
	{401, "UNAUTHENTICATED"},
	{403, "PERMISSION_DENIED"},
	{404, "NOT_FOUND"},
	{409, "ABORTED"},
	{409, "ALREADY_EXISTS"},
	{429, "RESOURCE_EXHAUSTED"},
	{499, "CANCELLED"},
	{500, "INTERNAL"},
	{500, "UNKNOWN"},
	{500, "DATA_LOSS"},
	{503, "UNAVAILABLE"},
	{504, "DEADLINE_EXCEEDED"},
}

// codeOf returns the HTTP status of an error's status, 500 if it is unknown.
func codeOf(status string) int {
	for _, s := range statuses {
		if s.status == status {
			return s.code
		}
	}
	return 500
}

func statusOf(code int) string {
	for _, s := range statuses {
		if s.code == code {
			return s.status
		}
	}
	if code < 500 {
		return "FAILED_PRECONDITION"
	}
	return "UNKNOWN"
}

const (
	badRequest      = 400
	entityTooLarge  = 413
	invalidArgument = "INVALID_ARGUMENT"
)

// refuse returns a 400.
func refuse(format string, args ...any) *protocol.Refusal {
	return &protocol.Refusal{Status: badRequest, Type: invalidArgument, Message: fmt.Sprintf(format, args...)}
}

// PromptTooLong is the refusal of a prompt that exceeds the model's limit, with its size and
// the limit in tokens.
func PromptTooLong(tokens, maximum int) *protocol.Refusal {
	return refuse("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", tokens, maximum)
}

// BodyTooLarge is the refusal of a body over the limit in bytes.
func BodyTooLarge(limit int) *protocol.Refusal {
	return refuse("Request payload size exceeds the limit: %d bytes.", limit)
}

// ErrorBody encodes a refusal as Google's APIs do. A refusal without a status or a message
// gets those of its code: Gemini CLI 0.61 ends with a stack trace on an error without them.
func (codec) ErrorBody(r *protocol.Refusal, _ string) []byte {
	code := r.Status
	if code < 400 {
		code = codeOf(r.Type)
	}
	status, message := r.Type, r.Message
	if status == "" || strings.ToUpper(status) != status {
		status = statusOf(code)
	}
	if message == "" {
		message = status
	}
	out := strconv.AppendInt([]byte(`{"error":{"code":`), int64(code), 10)
	out = rawjson.AppendString(append(out, `,"message":`...), message)
	out = rawjson.AppendString(append(out, `,"status":`...), status)
	return append(out, "}}"...)
}

// ErrorEvent returns an error for use within a stream.
func (c codec) ErrorEvent(r *protocol.Refusal) (event string, data []byte) {
	return "", c.ErrorBody(r, "")
}

// parseError reads an error body: an object with "error", or a list with one, as
// streamGenerateContent without alt=sse answers. A body that is not JSON is the message.
func parseError(body []byte) (code int, status, message string) {
	r := rawjson.NewReader(body)
	if r.Kind() == '[' {
		for range r.Elements() {
			return parseError(r.Raw())
		}
	}
	if r.Kind() != '{' {
		return 0, "", string(body[:min(len(body), 4<<10)])
	}
	failure := rawjson.Field(body, "error")
	r = rawjson.NewReader(failure)
	switch r.Kind() {
	case '"':
		message, _ = r.String()
	case '{':
		for key := range r.Fields() {
			switch string(key) {
			case "code":
				code, _ = r.Int()
			case "status":
				status, _ = r.String()
			case "message":
				message, _ = r.String()
			}
		}
	}
	return code, status, message
}

// overflowTexts are parts of the messages that say that a prompt is too long: of the Gemini
// API, of Vertex AI ("the input token count is N but model only supports up to M"), and of both for
// bodies over 20 MB.
var overflowTexts = []string{
	"exceeds the maximum number of tokens allowed",
	"but model only supports up to",
	"Request payload size exceeds the limit",
}

// parseOverflow recognises an error that says that the prompt is too large, nil if it is
// another one.
func parseOverflow(code int, message string) *protocol.Overflow {
	if code == entityTooLarge {
		return new(protocol.Overflow)
	}
	if code != badRequest {
		return nil
	}
	for i, text := range overflowTexts {
		at := strings.Index(message, text)
		if at < 0 {
			continue
		}
		o := new(protocol.Overflow)
		if i < len(overflowTexts)-1 {
			o.Tokens, o.Limit = lastNumber(message[:at]), firstNumber(message[at:])
		}
		return o
	}
	return nil
}

// maxBetween is how far from the phrase a number is looked for, in bytes.
const maxBetween = 60

// firstNumber returns the first whole number in a text, 0 if there is none.
func firstNumber(s string) int {
	s = s[:min(len(s), len(overflowTexts[0])+maxBetween)]
	at := strings.IndexAny(s, "0123456789")
	if at < 0 {
		return 0
	}
	s = s[at:]
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(s[:end])
	return n
}

// lastNumber returns the last whole number in a text, 0 if there is none.
func lastNumber(s string) int {
	s = s[max(0, len(s)-maxBetween):]
	end := strings.LastIndexAny(s, "0123456789") + 1
	start := end
	for start > 0 && '0' <= s[start-1] && s[start-1] <= '9' {
		start--
	}
	n, _ := strconv.Atoi(s[start:end])
	return n
}
