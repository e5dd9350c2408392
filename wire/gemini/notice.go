package gemini

import (
	"time"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
)

// TextReply implements wire.API.
func (codec) TextReply(req *protocol.Request, id, words string, _ time.Time) (contentType string, body []byte) {
	b := rawjson.AppendString([]byte(`{"candidates":[{"content":{"parts":[{"text":`), words)
	b = append(b, `}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":0,"totalTokenCount":0},"modelVersion":`...)
	b = rawjson.AppendString(b, req.Model)
	b = append(rawjson.AppendString(append(b, `,"responseId":`...), "furl"+id), '}')
	switch {
	case req.Stream && !req.Endpoint.List:
		return sse.ContentType, sse.JSON("", b)
	case req.Stream:
		return "application/json", bracketed(b)
	}
	return "application/json", b
}
