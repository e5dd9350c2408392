package anthropic

import (
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// AsksCompaction implements wire.API.
func (codec) AsksCompaction(req *protocol.Request) bool {
	return !isNull(rawjson.Field(req.Fields(), "compaction"))
}

// Ends implements wire.API.
func (codec) Ends(event string, _ []byte) bool { return event == "message_stop" || event == "error" }

// Continues implements wire.API. Chat Completions and Responses have words of
// their own for the same.
func (codec) Continues(stop string) bool { return stop == "tool_use" || stop == "end_turn" }
