// Package gemini implements the wire format of Gemini's generateContent, of the
// Gemini API and of Vertex AI: it decodes and encodes request bodies, contents and
// replies (streamed or not), and knows the provider's rules for a request and its
// usage and overflow reports. It does not access the network.
//
// docs/internals/gemini.md says what the package relies on, with sources.
//
// # Bytes
//
// Decoded values keep the bytes they came from: Message.Raw aliases the body,
// and Block.Start and Block.End are the position of a part in it. Encoding splices
// changes into those bytes and preserves everything else. A view without changes
// encodes to the body itself.
//
// Google accepts each field under two names: functionCall and function_call. Both are
// decoded, and an edit keeps the name that the client used.
//
// # Parts
//
//	text                          KindText
//	text with thought             KindThinking; Signature is the length of thoughtSignature
//	functionCall                  KindCall; Args are the raw bytes of args
//	functionResponse              KindResult; Text is the output in response, Error says that it has "error"
//	inlineData, fileData          KindImage for images, else KindDocument
//	an empty text                 KindThinking without text: clients add and remove such parts
//	everything else               KindOpaque; Name is the name of the field
//
// Adjacent texts of the model are one block, because streams cut a text anywhere, and
// clients send the pieces back as they came or joined.
//
// # Ids
//
// The ids of calls identify nothing: servers leave them out, and clients make them up,
// drop or replace them. They are not part of digests. When a message is recorded, furl.Log
// pairs results with calls by id, or else by name and order, and gives the others an id.
//
// # Replies
//
// Codec is a protocol.ReplyCodec. The pieces of a stream become one content: the texts
// between other parts are joined, and everything else is unchanged.
package gemini

import "github.com/furlhq/furl"

// Codec is the format of generateContent. It implements protocol.Codec,
// protocol.ReplyCodec and wire.API.
var Codec codec

type codec struct{}

func (codec) Format() furl.Format { return furl.FormatGemini }
