// Package openai is the two wire formats of OpenAI, Chat Completions and
// Responses: request bodies, single messages and items to furl values and
// back, the provider's rules for a request, its replies, streamed or not, and
// its usage and overflow reports. It does not touch the network.
//
// # Bytes
//
// What is decoded stands beside the bytes it came from: Message.Raw aliases
// the body, and Block.Start and Block.End say where a block stands in it.
// Encoding splices what changed into those bytes and leaves the rest as it
// came: key order, spacing, escapes, the text of numbers, unknown fields and
// unknown types. A view that changes nothing gives back the body itself.
//
// Values may nest to 10,000 levels (rawjson.MaxDepth); a body that goes deeper
// is an error that names the offset. Of fields with one name in one object the
// last counts, as it does for the provider; all are kept.
//
// # Messages
//
// One element of the request's list, a message of Chat Completions or an item
// of Responses, is one furl.Message. Leading system and developer messages are
// elements like others; Request.Preamble holds the tools (and, for Responses,
// the instructions before them). A message always has at least one block: one
// without words has a text block with an empty Text.
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
// The blocks of an assistant message come in this order, whatever the order of
// its keys: thinking, content, refusal, audio, calls. The legacy function_call
// has no id; its call and its function message both get "function:" and the
// function's name.
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
// Calls and reasoning have RoleAssistant, outputs RoleTool. Pairs whose output
// cannot be a text (computer_call, tool_search_call, mcp_approval_request) are
// opaque, with the call_id as ID, and so never masked; so are items that hold
// call and result in one (mcp_call, web_search_call). A compaction item has
// RoleSystem: where it leads the list it is as untouchable as instructions.
//
// Args are the JSON text inside an `arguments` string if there is any, else
// the string itself; for free-form tools always the string; for the shell and
// patch calls the action or operation object.
//
// A result's Error follows FailedOutput, since neither format has a flag for
// it, and the status or outcome of the patch and shell outputs.
//
// # Replies
//
// Chat and Responses are furl.ReplyCodecs. A streamed message of Chat
// Completions is put together with its fields in a fixed order; the items of a
// Responses stream are those that it says are done. Of a reply that was cut
// off, words stay as far as they came, and calls if they are whole. A chat
// stream reports its usage only if the request asked for it
// (stream_options.include_usage).
//
// What makes one reply of several is in wire.API: NewJoiner and JoinBodies.
package openai

import (
	"encoding/json"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// Chat is the Chat Completions format, Responses the Responses format: each a
// furl.Codec, a furl.ReplyCodec and a wire.API. A whole view is rendered by
// EncodeChat and EncodeResponses, which do what needs a look at the neighbours.
var (
	Chat      chat
	Responses responses
)

type chat struct{}

func (chat) Format() furl.Format { return furl.FormatChat }

type responses struct{}

func (responses) Format() furl.Format { return furl.FormatResponses }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// appendField appends a comma, unless the object has just been opened, then
// the name and the value.
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
