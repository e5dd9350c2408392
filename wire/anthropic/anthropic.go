// Package anthropic implements the wire format of Anthropic Messages: it
// decodes and encodes request bodies, messages and replies (streamed or not),
// and knows the provider's rules for a request and its usage and overflow
// reports. It does not access the network.
//
// # Bytes
//
// Decoded values keep the bytes they came from: Message.Raw aliases the body,
// and Block.Start and Block.End are the position of a content block in it.
// Encoding splices changes into those bytes and preserves everything else:
// key order, spacing, escapes, the text of numbers, unknown fields and
// unknown block types. A view without changes encodes to the body itself.
//
// Values may be nested up to 10,000 levels (rawjson.MaxDepth), the limit of
// encoding/json; a deeper body is an error that names the offset. If an
// object has several fields of one name, the last one is used, as the
// provider does; all are kept, and an edit changes the last one.
//
// # Blocks
//
//	text                          KindText
//	thinking, redacted_thinking   KindThinking; Signature is the length of signature or data
//	tool_use                      KindCall; Args are the raw bytes of input
//	tool_result                   KindResult; Text joins the text parts, Error is is_error
//	image, document               KindImage, KindDocument
//	everything else               KindOpaque; Name is the wire's type
//
// Types says how the types are handled. Blocks of other types, in messages or in the
// content of results, and blocks in messages of an unknown role are Fixed, like those
// that define tools.
//
// A server_tool_use is opaque, not a call: the provider runs it, and its
// result is in the same assistant message, so there is no pair to keep
// together across messages. For opaque blocks Text contains the strings found
// anywhere in the block, for sizing and search, at most 1 MiB, and Signature
// the length of its encrypted data.
//
// A plain text document has its text in Text and no Media.Bytes, so that it
// is not counted twice. A cache breakpoint (cache_control) on a part inside a
// tool_result counts as one on the result.
//
// # Replies
//
// Codec is a protocol.ReplyCodec. The pieces of a stream become the blocks that
// the same reply would have as one body: the block of content_block_start,
// with the text of the deltas in its fields, everything else unchanged. Of an
// interrupted reply, partial text is kept, and other blocks only if they are
// complete.
//
// wire.API describes how several replies are joined: NewJoiner and
// JoinBodies.
package anthropic

import "github.com/furlhq/furl"

// Codec is the Anthropic Messages format. It implements protocol.Codec,
// protocol.ReplyCodec and wire.API.
var Codec codec

type codec struct{}

func (codec) Format() furl.Format { return furl.FormatAnthropic }
