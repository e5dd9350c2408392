package wire

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// ErrUnclear is wrapped by the error of Detect for a body that may be in more than one
// format, or is in none.
var ErrUnclear = errors.New("the format of the request is unclear")

// maxSigns is how many elements of a list of a request are read for signs of its format.
const maxSigns = 64

// Detect returns the API whose format a request body has, by what only requests of that
// format have. A conversation of plain texts looks the same in Anthropic Messages and Chat
// Completions.
func Detect(body []byte) (API, error) {
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, fmt.Errorf("%w: it is not a JSON object", ErrUnclear)
	}
	signs := make(map[furl.Format]bool)
	list := ""
	for name := range r.Fields() {
		switch string(name) {
		case "input", "previous_response_id", "instructions", "max_output_tokens":
			signs[furl.FormatResponses] = true
			list = "input"
		case "system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking", "top_k", "context_management", "output_config":
			signs[furl.FormatAnthropic] = true
		case "max_completion_tokens", "stop", "n", "logit_bias", "frequency_penalty", "presence_penalty", "stream_options", "response_format",
			"reasoning_effort", "functions", "function_call", "parallel_tool_calls", "seed", "logprobs":
			signs[furl.FormatChat] = true
		case "messages":
			list = "messages"
			signsInList(r, signs)
			continue
		case "tools":
			signsInTools(r, signs)
			continue
		}
		r.Skip()
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	switch {
	case list == "":
		return nil, fmt.Errorf("%w: it has neither messages nor input", ErrUnclear)
	case list == "input":
		return For(furl.FormatResponses), nil
	case signs[furl.FormatAnthropic] && !signs[furl.FormatChat]:
		return For(furl.FormatAnthropic), nil
	case signs[furl.FormatChat] && !signs[furl.FormatAnthropic]:
		return For(furl.FormatChat), nil
	}
	return nil, fmt.Errorf("%w: Anthropic Messages and Chat Completions look the same here", ErrUnclear)
}

// signsInList reads a list of messages.
func signsInList(r *rawjson.Reader, signs map[furl.Format]bool) {
	fieldsInList(r, func(name string) {
		switch name {
		case "role":
			if role, _ := r.String(); role == "system" || role == "developer" || role == "tool" || role == "function" {
				signs[furl.FormatChat] = true
			}
			return
		case "tool_calls", "tool_call_id", "function_call", "refusal":
			signs[furl.FormatChat] = true
		case "content":
			signsInContent(r, signs)
			return
		}
		r.Skip()
	})
}

// signsInContent reads the content of a message.
func signsInContent(r *rawjson.Reader, signs map[furl.Format]bool) {
	fieldsInList(r, func(name string) {
		switch name {
		case "type":
			switch typ, _ := r.String(); typ {
			case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use":
				signs[furl.FormatAnthropic] = true
			case "image_url", "input_audio", "file", "refusal":
				signs[furl.FormatChat] = true
			}
			return
		case "cache_control":
			signs[furl.FormatAnthropic] = true
		}
		r.Skip()
	})
}

// signsInTools reads the list of tools.
func signsInTools(r *rawjson.Reader, signs map[furl.Format]bool) {
	fieldsInList(r, func(name string) {
		switch name {
		case "input_schema":
			signs[furl.FormatAnthropic] = true
		case "function":
			signs[furl.FormatChat] = true
		}
		r.Skip()
	})
}

// fieldsInList calls read for the fields of the first objects of a list, which consumes the
// value. Anything else is skipped.
func fieldsInList(r *rawjson.Reader, read func(name string)) {
	if r.Kind() != '[' {
		r.Skip()
		return
	}
	for i := range r.Elements() {
		if i >= maxSigns || r.Kind() != '{' {
			r.Skip()
			continue
		}
		for name := range r.Fields() {
			read(string(name))
		}
	}
}
