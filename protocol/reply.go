package protocol

import (
	"encoding/json"

	"github.com/furlhq/furl"
)

// Refusal is a provider's error answer to a request.
type Refusal struct {
	Status  int    // HTTP status
	Type    string // the provider's error type, such as "invalid_request_error"
	Code    string // OpenAI's error code, or Anthropic's details.error_code; "" if none
	Param   string // OpenAI's param, "" if none
	Message string // the provider's text
}

func (r *Refusal) Error() string { return r.Message }

// Reply is a provider's answer to one request, streamed or not.
type Reply struct {
	Format furl.Format
	ID     string // the provider's id of the response
	Model  string // that answered, as the provider names it
	// Messages are the reply as the client sends it back in its next request:
	// the assistant message (of several choices the first), or the output items
	// of Responses. Empty texts are left out. Of an interrupted reply they are
	// the text so far and complete calls.
	Messages []*furl.Message
	Usage    furl.Usage // as reported so far; tokens from the cache count once
	// Passes are the passes of models for the request, if the provider lists
	// several; see furl.Passes.
	Passes furl.Passes
	// Terms are those under which the provider billed the request.
	Terms furl.Terms
	// Stop is the provider's reason for the end of the reply: stop_reason,
	// finish_reason, or the incomplete reason or status of a response. It is ""
	// before the end.
	Stop string
	// Complete reports whether the reply reached its end without an error.
	Complete bool
	// Refusal is the provider's error, nil if there is none. Status is the HTTP
	// status, or that of the error's type inside a stream.
	Refusal *Refusal
	// Overflow is set if the prompt was too long, or prompt and output filled
	// the window.
	Overflow *Overflow
	// ThinkingRefused is set if the Refusal says that thinking in the prompt is not
	// valid there.
	ThinkingRefused *ThinkingRefused
	// Dropped lists the thinking blocks that the provider left out of the
	// prompt (Anthropic's input_transformations).
	Dropped []DroppedBlock
	// ContextManagement is the provider's report of edits it made itself
	// (Anthropic's applied_edits), nil if none.
	ContextManagement json.RawMessage
}

// Overflow describes a prompt that did not fit, in the provider's tokens.
// Unknown values are 0.
type Overflow struct {
	// Tokens is the size of the prompt; of prompt and output together if the
	// reply has no Refusal.
	Tokens int
	// Limit is the largest allowed prompt.
	Limit int
}

// ThinkingRefused describes a refusal of thinking in the prompt.
type ThinkingRefused struct {
	// Bound reports that the provider says that the thinking is bound to another
	// prompt. Otherwise its signature may be from another provider.
	Bound bool
}

// DroppedBlock is a thinking block that a provider left out of the prompt.
type DroppedBlock struct {
	Path   string // where it stood, such as "messages.3.content.0"
	Reason string // such as "prefix_binding_mismatch"
}

// Assembler builds a Reply from the events of one stream. It is for one
// goroutine.
type Assembler interface {
	// Feed reads the next event: its type, "" if the stream names none, and its
	// data, which is not kept. Unknown types and fields are ignored. After an
	// error, which means that the stream is not of the format, every later Feed
	// returns it again.
	Feed(event string, data []byte) error

	// Reply returns what has been read so far, never nil, and the error of
	// Feed. It may be called repeatedly.
	Reply() (*Reply, error)
}

// Joiner joins the streams of several replies into one for the client: between
// them the model called tools that furl answered, unknown to the client. The
// first stream's events are unchanged until such a call. A Joiner is for one
// goroutine.
type Joiner interface {
	// Event returns the bytes that the client receives for an event, possibly
	// none. The type is "" if the stream names none; data is nil if the event
	// has none; raw is the event as received. None of them is kept.
	Event(event string, data, raw []byte) []byte

	// Called reports whether this stream has a call of one of furl's tools.
	Called() bool

	// Next begins another stream.
	Next()

	// End returns what was held back of this stream's end, with the usage of
	// all streams. If quiet is set, the model called only furl's tools.
	End(used furl.Usage, quiet bool) []byte
}

// ReplyCodec decodes and writes a provider's answers. Codecs of provider
// formats implement it.
type ReplyCodec interface {
	// NewAssembler returns an Assembler for one streamed reply.
	NewAssembler() Assembler

	// DecodeReply decodes an answer that was not streamed, errors included. The
	// Reply aliases the body. An error means that the body is not of the
	// format.
	DecodeReply(status int, body []byte) (*Reply, error)

	// ErrorBody returns the body of an error answer.
	ErrorBody(r *Refusal, requestID string) []byte

	// ErrorEvent returns an error inside a stream: the event's type, "" if the
	// format names none, and its data.
	ErrorEvent(r *Refusal) (event string, data []byte)
}
