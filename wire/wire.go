// Package wire knows the wire formats of providers: what no other package needs
// to know apart. Everything that differs between two formats is a method of
// API, so that a request can be handled without asking which format it has.
//
//	api := wire.For(req.Format)
//	list, err := api.EncodeView(view)
//
// A format lives in a package of its own (wire/anthropic, wire/openai), which
// knows the root package and no other format. CONTRIBUTING.md says what a new
// one takes.
package wire

import (
	"encoding/json"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// API is one wire format. An API is pure and safe for concurrent use; it does
// not touch the network.
type API interface {
	furl.Codec
	furl.ReplyCodec

	// Provider is the provider whose format it is, as OpenTelemetry names it.
	Provider() string
	// Path is how the path of a request ends.
	Path() string
	// CountPath is how the path of a request ends that asks for the size of a
	// prompt, "" if the provider has none.
	CountPath() string
	// List is the field of a request that holds its messages.
	List() string

	// EncodeView gives a whole view as the elements of that list. Unlike
	// EncodeMessage it sees the neighbours of each message.
	EncodeView(v *furl.View) ([]json.RawMessage, error)

	// Stateful reports whether a request continues a history that the provider
	// keeps. Nothing of it may be hidden: its list holds only what is new.
	Stateful(req *furl.Request) bool

	tools
	streams
	questions
}

// tools is what furl needs to give a model tools of its own.
type tools interface {
	// Tool defines a function as a request lists it. The schema is JSON; name
	// and description need no escapes.
	Tool(name, description, schema string) []byte
	// TakesTools reports whether furl can add tools to a request and answer
	// their calls: it asks for one reply, which the provider does not keep under
	// an id that the client could continue from.
	TakesTools(req *furl.Request) bool
	// ToolResults gives the messages that hold the results of calls, in order.
	ToolResults(results []furl.Block) ([]*furl.Message, error)
}

// streams is what furl needs to hold back, or to change, what a client gets.
type streams interface {
	// Silent reports whether an event of a stream comes before anything that
	// the model says, and is no error. The type is "" if the stream names none.
	Silent(event string, data []byte) bool

	// Ends reports whether an event is the last of a stream that says anything.
	Ends(event string, data []byte) bool
	// Continues reports whether a reply that ended for this reason, in the
	// provider's words, and has calls, can be followed by their results.
	Continues(stop string) bool

	// NewJoiner makes one stream of several. own tells furl's tools by name.
	NewJoiner(own func(name string) bool) furl.Joiner
	// Calls reports whether a reply that is no stream calls one of furl's
	// tools.
	Calls(body []byte, own func(name string) bool) bool
	// JoinBodies makes one reply of several that are no streams: the last one's
	// body, with what was said before in front, without calls of furl's tools,
	// and with the usage of all. If quiet is set, the model called nothing else.
	JoinBodies(before []*furl.Reply, body []byte, own func(name string) bool, used furl.Usage, quiet bool) ([]byte, error)
	// DropTools takes furl's tools out of a reply that repeats the tools of the
	// request. One that does not is given back itself.
	DropTools(body []byte, own func(name string) bool) []byte
}

// questions is what furl needs to ask a model something itself.
type questions interface {
	// Question makes a request with a single question. From the client's
	// request it takes how it is answered and for whom.
	Question(client []byte, model, instructions, question string, maxTokens int) []byte
	// Unforced changes a client's request so that a further question in it is
	// answered alone: no calls, where forbidding them keeps the provider's
	// cache, and without the fields that are about one answer.
	Unforced(body []byte) []byte
	// Ask adds words of the user to the end of a request's list; ok is false if
	// it has no list.
	Ask(body []byte, words string) (_ []byte, ok bool)
	// WithLimit bounds the answer: tokens for the words, and slack more where
	// the model thinks as much as it wants, at most all in all (0: no limit).
	// ok is false if the request's own thinking leaves no room.
	WithLimit(body []byte, tokens, slack, most int) (_ []byte, ok bool)
}

// all lists every format.
var all = []API{anthropic.Codec, openai.Chat, openai.Responses}

// For gives what is known of a wire format, nil if there is no such format.
func For(format furl.Format) API {
	for _, api := range all {
		if api.Format() == format {
			return api
		}
	}
	return nil
}

// ForPath returns the format of requests to a path, and whether they ask for the
// size of a prompt. The format is nil if the path is not one of a known API.
func ForPath(path string) (api API, count bool) {
	path = strings.TrimSuffix(path, "/")
	for _, api := range all {
		if strings.HasSuffix(path, api.Path()) {
			return api, false
		}
		if p := api.CountPath(); p != "" && strings.HasSuffix(path, p) {
			return api, true
		}
	}
	return nil, false
}
