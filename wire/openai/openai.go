// Package openai implements the two wire formats of OpenAI, Chat Completions
// and Responses: it decodes and encodes request bodies, messages, items and
// replies (streamed or not), and knows the provider's rules for a request and
// its usage and overflow reports. It does not access the network.
//
// # Bytes
//
// Decoded values keep the bytes they came from: Message.Raw aliases the body,
// and Block.Start and Block.End are the position of a block in it. Encoding
// splices changes into those bytes and preserves everything else: key order,
// spacing, escapes, the text of numbers, unknown fields and unknown types. A
// view without changes encodes to the body itself.
//
// Values may be nested up to 10,000 levels (rawjson.MaxDepth); a deeper body
// is an error that names the offset. If an object has several fields of one
// name, the last one is used, as the provider does; all are kept.
//
// # Messages
//
// One element of the request's list, a message of Chat Completions or an item
// of Responses, is one furl.Message. Leading system and developer messages
// are elements like others; Request.Preamble contains the tools (and, for
// Responses, the instructions before them). A message always has at least one
// block: if it has no content, that is a text block with an empty Text.
//
// Chat Completions:
//
//	content string or text part     KindText
//	refusal, field or part          KindText
//	image_url part                  KindImage
//	file, input_audio part          KindDocument
//	reasoning_content, reasoning    KindThinking
//	reasoning_details               KindThinking, Signature its length
//	tool_calls, function_call       KindCall
//	role tool, role function        KindResult, one for the whole message
//	audio, unknown parts            KindOpaque
//
// The blocks of an assistant message are in this order, whatever the order of
// its keys: thinking, content, refusal, audio, calls. The legacy
// function_call has no id; its call and its function message both get the id
// "function:" followed by the function's name.
//
// Responses:
//
//	message                         a block per content part, as above
//	reasoning                       KindThinking, Signature the length of encrypted_content
//	function_call, custom_tool_call, local_shell_call,
//	shell_call, apply_patch_call    KindCall, ID its call_id
//	the five with _output           KindResult
//	everything else                 KindOpaque, Name its type
//
// ItemTypes and PartTypes say how the types are handled. Items and parts of other types,
// and messages of an unknown role, are Fixed, like those that define tools. An item has
// the role that it states; one of a type that only the model writes is the assistant's;
// any other has none.
//
// Calls and reasoning have RoleAssistant, outputs RoleTool. Pairs whose
// output cannot be a text (computer_call, tool_search_call,
// mcp_approval_request) are opaque, with the call_id as ID, and are never
// masked; so are items that contain call and result in one (mcp_call,
// web_search_call). A compaction item has RoleSystem: at the start of the
// list it is treated like instructions.
//
// Args are the JSON text inside an `arguments` string if it is JSON,
// otherwise the string itself; for custom tools always the string; for the
// shell and patch calls the action or operation object.
//
// A result's Error follows FailedOutput, because neither format has a flag
// for it, and the status or outcome of the patch and shell outputs. ErrorText
// follows FailedText.
//
// # Replies
//
// Chat and Responses are furl.ReplyCodecs. A streamed message of Chat
// Completions is assembled with its fields in a fixed order; the items of a
// Responses stream are those reported as done. Of an interrupted reply,
// partial text is kept, and calls only if they are complete. A chat stream
// reports its usage only if the request asked for it
// (stream_options.include_usage).
//
// wire.API describes how several replies are joined: NewJoiner and
// JoinBodies.
package openai

import (
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// Chat is the Chat Completions format, Responses the Responses format. Each
// implements protocol.Codec, protocol.ReplyCodec and wire.API. EncodeChat and
// EncodeResponses encode a whole view, because some rules depend on
// neighbouring messages.
var (
	Chat      chat
	Responses responses
)

type chat struct{}

func (chat) Format() furl.Format { return furl.FormatChat }

type responses struct{}

func (responses) Format() furl.Format { return furl.FormatResponses }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// appendField appends a comma, unless it is the first field of the object,
// then the name and the value.
func appendField(dst []byte, name string, value []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(rawjson.AppendString(dst, name), ':')
	return append(dst, value...)
}

func quote(s string) json.RawMessage { return rawjson.AppendString(nil, s) }

// isObject reports whether b is one valid JSON object.
func isObject(b []byte) bool {
	return rawjson.NewReader(b).Kind() == '{' && rawjson.Check(b) == nil
}
