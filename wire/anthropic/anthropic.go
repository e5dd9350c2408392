// Package anthropic is the wire format of Anthropic Messages: request bodies
// and single messages to furl values and back, the provider's rules for a
// request, its replies, streamed or not, and its usage and overflow reports. It
// does not touch the network.
//
// # Bytes
//
// What is decoded stands beside the bytes it came from: Message.Raw aliases the
// body, and Block.Start and Block.End say where a content block stands in it.
// Encoding splices what changed into those bytes and leaves the rest as it
// came: key order, spacing, escapes, the text of numbers, unknown fields and
// unknown block types. A view that changes nothing gives back the body itself.
//
// Values may nest to 10,000 levels (rawjson.MaxDepth), the limit of
// encoding/json; a body that goes deeper is an error that names the offset. Of
// fields with the same name in one object the last one counts, as it does for
// the provider; all of them are kept, and an edit changes the one that counts.
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
// A server_tool_use is opaque, not a call: the provider runs it, and its result
// stands in the same assistant message, so there is no pair to keep together
// across messages. For opaque blocks Text holds the words found anywhere in the
// block, for sizing and search, at most 1 MiB of them, and Signature the length
// of what is encrypted in it.
//
// A document that is plain text has its words in Text and no Media.Bytes, so
// that they are not counted twice. A cache mark on a part inside a tool_result
// counts as one on the result.
//
// # Replies
//
// Codec is a furl.ReplyCodec. What a stream brings in pieces becomes the blocks
// that the same reply has in one body: the block that content_block_start gave,
// with what the deltas added in its fields, everything else as it came. Of a
// reply that was cut off, text stays as far as it came, and other blocks if
// they are whole.
//
// What makes one reply of several is in wire.API: NewJoiner and JoinBodies.
package anthropic

import "github.com/furlhq/furl"

// Codec is the Anthropic Messages format: a furl.Codec, a furl.ReplyCodec and a
// wire.API.
var Codec codec

type codec struct{}

func (codec) Format() furl.Format { return furl.FormatAnthropic }
