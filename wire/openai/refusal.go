package openai

import (
	"fmt"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// refuse returns the refusal of a request that violates a rule.
func refuse(code, param, format string, args ...any) *protocol.Refusal {
	return &protocol.Refusal{
		Status: 400, Type: "invalid_request_error", Code: code, Param: param, Message: fmt.Sprintf(format, args...),
	}
}

func emptyArray(param string) *protocol.Refusal {
	return refuse("empty_array", param,
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func longArray(param string, most, got int) *protocol.Refusal {
	return refuse("array_above_max_length", param,
		"Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", param, most, got)
}

func wrongType(param, want string, kind byte) *protocol.Refusal {
	return refuse("invalid_type", param, "Invalid type for '%s': expected %s, but got %s instead.", param, want, kindName(kind))
}

// kindName returns the provider's name for a type of JSON value.
func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	}
	return "null"
}

// maxCacheKey is the length limit of prompt_cache_key.
const maxCacheKey = 64

// bodyFields are the top-level fields of a body that the rules use.
type bodyFields struct {
	list               byte // kind of messages or input; 0 if absent
	conversation, prev bool
	cacheKey           *protocol.Refusal
}

func readBody(body []byte, list string) (f bodyFields, err error) {
	r := rawjson.NewReader(body)
	for key := range r.Fields() {
		switch string(key) {
		case list:
			f.list = r.Kind()
		case "previous_response_id":
			f.prev = r.Kind() != 'n'
		case "conversation":
			f.conversation = r.Kind() != 'n'
		case "prompt_cache_key":
			f.cacheKey = nil
			s, _ := r.String()
			if n := utf8.RuneCountInString(s); n > maxCacheKey {
				f.cacheKey = refuse("string_above_max_length", "prompt_cache_key",
					"Invalid 'prompt_cache_key': string too long. Expected a string with maximum length %d, but got a string with length %d instead.",
					maxCacheKey, n)
			}
		}
	}
	return f, r.End()
}

// notJSON is the refusal of a body that cannot be parsed.
func notJSON() *protocol.Refusal {
	return refuse("", "", "We could not parse the JSON body of your request. "+
		"(HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
}
