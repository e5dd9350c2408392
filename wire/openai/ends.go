package openai

import "bytes"

// CountPath implements wire.API: Chat Completions has none.
func (chat) CountPath() string { return "" }

// CountPath implements wire.API. That of Responses is not supported.
func (responses) CountPath() string { return "" }

// Ends implements wire.API.
func (chat) Ends(event string, data []byte) bool {
	return event == "error" || string(bytes.TrimSpace(data)) == "[DONE]"
}

// Ends implements wire.API.
func (responses) Ends(event string, _ []byte) bool {
	switch event {
	case "response.completed", "response.incomplete", "response.failed", "error":
		return true
	}
	return false
}

// Continues implements wire.API.
func (chat) Continues(stop string) bool {
	return stop == "tool_calls" || stop == "function_call" || stop == "stop"
}

// Continues implements wire.API.
func (responses) Continues(stop string) bool { return stop == "completed" }
