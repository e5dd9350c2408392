// Package wire contains everything that depends on a provider's wire format.
// Each difference between two formats is a method of API, so that other
// packages handle requests without comparing formats.
//
//	api := wire.For(req.Format)
//	list, err := api.EncodeView(view)
//
// Each format has its own package (wire/anthropic, wire/openai, wire/gemini), which
// imports the root package and no other format. CONTRIBUTING.md describes how
// to add one.
package wire

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/gemini"
	"github.com/furlhq/furl/wire/openai"
)

// API is one wire format. Its methods are pure, safe for concurrent use, and
// do not access the network.
type API interface {
	protocol.Codec
	protocol.ReplyCodec

	// Provider returns the provider's name as in OpenTelemetry.
	Provider() string
	// Endpoint returns what the path and the query of a request say; ok is false if the
	// path is not one of the API. The end of the path decides, in upper or lower case.
	Endpoint(path, query string) (e protocol.Endpoint, ok bool)
	// RequestPath returns the path of requests to a model at the provider, with a query if
	// one is needed. The model matters only if the path has it.
	RequestPath(model string, stream bool) string
	// WithModel returns the path of a request to another model: path itself unless it has
	// the model's name.
	WithModel(path, model string) string
	// AsksCompaction reports whether a request asks for a compaction, at another endpoint than
	// the one for it.
	AsksCompaction(req *protocol.Request) bool
	// DecodeUsage decodes the usage object of a response, in the provider's form.
	DecodeUsage(usage []byte) (furl.Usage, furl.Passes, furl.Terms, error)
	// List returns the field of a request that contains its messages.
	List() string

	// EncodeView encodes a whole view as the elements of that list. Unlike
	// EncodeMessage it sees the neighbours of each message.
	EncodeView(v *furl.View) ([]json.RawMessage, error)

	// CacheRequest returns which entries of the provider's prompt cache a request
	// asks for.
	CacheRequest(req *protocol.Request) protocol.CacheRequest

	// Stateful reports whether a request continues a history stored by the
	// provider. Its list contains only new messages, so none of it may be
	// hidden.
	Stateful(req *protocol.Request) bool
	// Reference returns the provider's id of the item that a message stands for without its
	// content, "" for other messages. ItemID returns the id of an item that can be referred
	// to, "" if it has none.
	Reference(m *furl.Message) string
	ItemID(m *furl.Message) string
	// Thread returns the thread that a request creates or continues, nil if it has none.
	Thread(req *protocol.Request) *protocol.Thread

	// Judge sets Block.Fixed of a message from a record, which an older version of
	// furl may have written.
	Judge(m *furl.Message)
	// UnknownTypes returns the types of blocks, items and parts of a message that furl
	// does not know, sorted, and an unknown role as "role:NAME". They are words of the
	// client or the provider, of any length.
	UnknownTypes(m *furl.Message) []string

	tools
	streams
	questions
	programs
	notices

	// ModelQueries returns the requests to a provider of this API for the sizes of a
	// model, in the order in which they are tried. vendor is the provider's name as in
	// upstream.Client.Vendor, "" if it is unknown.
	ModelQueries(vendor, model string) []protocol.ModelQuery
}

// ModelQueries returns the requests to a provider for the sizes of a model that is used in
// a format. Servers that support Anthropic's API may support OpenAI's too.
func ModelQueries(format furl.Format, vendor, model string) []protocol.ModelQuery {
	api := For(format)
	if api == nil {
		return nil
	}
	queries := api.ModelQueries(vendor, model)
	if format == anthropic.Codec.Format() && vendor != "Anthropic" {
		queries = append(queries, openai.Chat.ModelQueries(vendor, model)...)
	}
	return queries
}

// tools contains what furl needs to give a model additional tools.
type tools interface {
	// Tool defines a function as a request lists it. The schema is JSON.
	Tool(name, description, schema string) []byte
	// LastTool returns the offset in a request's field tools at which the definition of the
	// last function ends; ok is false if there is none.
	LastTool(tools []byte) (end int, ok bool)
	// TakesTools reports whether furl can add tools to a request and answer
	// their calls: the request asks for one reply, and the provider does not
	// store the reply under an id from which the client could continue.
	TakesTools(req *protocol.Request) bool
	// ToolResults returns the messages with the results of calls, in order.
	ToolResults(results []furl.Block) ([]*furl.Message, error)
}

// streams contains what furl needs to delay or change replies.
type streams interface {
	// Silent reports whether an event of a stream precedes all of the model's
	// output and is not an error. The event is "" if the stream does not name
	// it.
	Silent(event string, data []byte) bool

	// Ends reports whether an event is the last of a stream that has content.
	Ends(event string, data []byte) bool
	// Continues reports whether a reply with calls and this stop reason, in
	// the provider's words, can be followed by their results.
	Continues(stop string) bool

	// NewJoiner joins several streams into one. own recognises furl's tools
	// by name.
	NewJoiner(own func(name string) bool) protocol.Joiner
	// Calls reports whether a non-streamed reply calls one of furl's tools.
	Calls(body []byte, own func(name string) bool) bool
	// JoinBodies joins several non-streamed replies into one: the body of the
	// last one, preceded by the content of the earlier ones, without calls of
	// furl's tools, and with the total usage. quiet means that the model
	// called no other tools.
	JoinBodies(before []*protocol.Reply, body []byte, own func(name string) bool, used furl.Usage, quiet bool) ([]byte, error)
	// DropTools removes furl's tools from a reply that repeats the tools of
	// the request. Other replies are returned unchanged.
	DropTools(body []byte, own func(name string) bool) []byte
}

// questions contains what furl needs to send requests to a model itself.
type questions interface {
	// Question builds a request with a single question. It takes from the
	// client's request the settings for whom and how to answer.
	Question(client []byte, model, instructions, question string, maxTokens int) []byte
	// AllowsPlainText reports whether the model may reply to a client's request with plain
	// text: it forces no call and no other form of output.
	AllowsPlainText(body []byte) bool
	// Unforced changes a client's request so that an additional question at
	// its end gets a text answer: it forbids calls, where that keeps the
	// provider's cache, and removes the fields that constrain one answer.
	Unforced(body []byte) []byte
	// Ask adds text of the user to the end of a request's list; ok is false
	// if the request has no list.
	Ask(body []byte, words string) (_ []byte, ok bool)
	// WithLimit bounds the answer: tokens for the text, plus slack if the
	// model's thinking is unbounded, at most most in total (0: no limit). ok
	// is false if the request's own thinking leaves no room.
	WithLimit(body []byte, tokens, slack, most int) (_ []byte, ok bool)
	// CacheOnly changes a request so that the model only reads its prompt: the
	// provider renews or writes its cache entries and generates nothing. ok is
	// false if the provider has no such request, or not with the settings of
	// this one. The result shares no memory with body.
	CacheOnly(body []byte) (_ []byte, ok bool)
	// HourPreamble changes a request so that the entries of the provider's cache at
	// the client's breakpoints in instructions and tools live an hour. ok is false if
	// it has no such breakpoint with a shorter lifetime, or the provider has no choice
	// of lifetimes there. The result shares no memory with body.
	HourPreamble(body []byte) (_ []byte, ok bool)
	// BillingLine returns the line in a request's instructions that tells the provider
	// what to bill, "" if there is none. It changes with each request, so caches of other
	// providers miss. WithBillingLine changes the line to another one. ok is false if
	// the request has none or the same one.
	BillingLine(body []byte) string
	WithBillingLine(body []byte, line string) (_ []byte, ok bool)
}

// programs contains what a program needs to send requests of its own.
type programs interface {
	// NewRequest returns a streamed request. Its list is the last field, and empty
	// unless the format has the instructions in it.
	NewRequest(p *protocol.Params) ([]byte, error)
	// Headers returns the headers of a request with an API key, which may be "".
	Headers(key string) map[string]string
	// UserMessage returns a message of the user with texts, images and documents.
	UserMessage(parts []protocol.Part) (*furl.Message, error)
	// ResultMessage returns the result of a call. Of the call, the id and the name are used.
	ResultMessage(call furl.Block, parts []protocol.Part, failed bool) (*furl.Message, error)
	// Delta returns what an event of a stream adds to the text, the thinking or
	// the calls of the reply; ok is false if it adds nothing.
	Delta(event string, data []byte) (d protocol.Delta, ok bool)
}

// notices contains what furl needs to answer a request without a model.
type notices interface {
	// TextReply returns a reply with a text, streamed if the request asks for that,
	// and its content type. It reports no usage. id is unique and has only letters
	// and digits; the reply's id contains it. made is the reply's time.
	TextReply(req *protocol.Request, id, text string, made time.Time) (contentType string, body []byte)
	// ContinuedFrom returns the body of a request that continues from a TextReply,
	// which the provider does not know, changed to continue from the response before
	// it; nil for other requests. The refusal is set if the provider does not have the
	// messages before the TextReply.
	ContinuedFrom(req *protocol.Request) (edited []byte, err *protocol.Refusal)
}

// all lists every format.
var all = []API{anthropic.Codec, openai.Chat, openai.Responses, gemini.Codec}

// For returns the API of a wire format, nil if the format is unknown.
func For(format furl.Format) API {
	for _, api := range all {
		if api.Format() == format {
			return api
		}
	}
	return nil
}

// ForPath returns the API of requests to a path, nil if no format uses the path, and what the
// path and the query of the URL say. The end of the path decides, whatever precedes it: base URLs differ. So that no
// request escapes by its spelling, upper case, repeated slashes and backslashes do not matter.
// Requests for a compaction are like others: they have the whole history, and a reply.
func ForPath(path, query string) (API, protocol.Endpoint) {
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' })
	path = "/" + strings.Join(segments, "/")
	for _, api := range all {
		if e, ok := api.Endpoint(path, query); ok && !hasOtherMessages(strings.ToLower(e.Prefix)) {
			return api, e
		}
	}
	return nil, protocol.Endpoint{}
}

// hasOtherMessages reports whether what follows a path is part of a stored object: OpenAI
// has /threads/ID/messages and /chat/completions/ID/messages.
// Source: https://platform.openai.com/docs/api-reference
func hasOtherMessages(path string) bool {
	return strings.Contains(path+"/", "/threads/") || strings.Contains(path+"/", "/chat/completions/")
}
