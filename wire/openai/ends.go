package openai

import (
	"bytes"

	"github.com/furlhq/furl/protocol"
)

// AsksCompaction implements wire.API.
func (chat) AsksCompaction(*protocol.Request) bool { return false }

// AsksCompaction implements wire.API: the last item is a compaction_trigger.
func (responses) AsksCompaction(req *protocol.Request) bool {
	n := len(req.Messages)
	return n > 0 && len(req.Messages[n-1].Blocks) == 1 && req.Messages[n-1].Blocks[0].Name == "compaction_trigger"
}

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
