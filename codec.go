package furl

import "encoding/json"

// Request is one decoded request to a model.
type Request struct {
	Format    Format
	Body      []byte // as it came in
	Model     string
	MaxTokens int // requested output; 0: not given
	Stream    bool
	// Preamble holds what stands before the messages and is never reduced,
	// as blocks for measuring: system or instruction texts, and one opaque
	// block per tool whose Text is the tool's JSON.
	Preamble []Block
	// PreambleDigest changes when the system text or the tools change.
	PreambleDigest Digest
	// Messages are the decoded messages; Messages[i].Raw aliases Body.
	Messages []Message
	// Offsets[i] is where Messages[i].Raw starts in Body.
	Offsets []int
	// Chains, where they are known, are the chains of digests at the end of
	// each message (see Message.Extend).
	Chains []Digest
	// Ambiguous names a field of the request, a message, a block or a tool that
	// occurs twice or is spelled in another case, "" if there is none. Parsers
	// differ in which one counts, so what was decoded may not be what the
	// provider reads: such a request is not to be changed.
	Ambiguous string
	// Outline is Body without most of its list, for who reads what stands
	// beside that. If nil, there is only Body.
	Outline []byte
}

// Fields is the Outline, or the Body where there is none: all fields of the
// request, the list not necessarily whole.
func (r *Request) Fields() []byte {
	if r.Outline != nil {
		return r.Outline
	}
	return r.Body
}

// Codec is one provider's wire format: bytes to values and back. Codecs are
// pure and safe for concurrent use; they do not touch the network.
type Codec interface {
	Format() Format

	// DecodeRequest decodes a request body, keeping every byte. The body
	// must not be changed afterwards.
	DecodeRequest(body []byte) (*Request, error)

	// DecodeMessage decodes one element of the request's list. The Message
	// aliases raw and is sealed.
	DecodeMessage(raw []byte) (*Message, error)

	// EncodeMessage gives the wire elements for one shown message: its Raw
	// bytes unchanged if it is shown as recorded and of this format, with
	// only the changed blocks spliced if edited, built from the blocks if it
	// is of another format or furl's own. A message of which nothing is left
	// gives none; one of another format may give several.
	EncodeMessage(s Shown) ([]json.RawMessage, error)

	// EncodeRequest applies a view of req's messages to req's body. The
	// messages of the view are matched to req's by position: shown message
	// with Index i is req.Messages[i]. A view that changes nothing gives
	// back the body itself.
	EncodeRequest(req *Request, v *View) ([]byte, error)

	// NewMessage builds a message of this format from blocks, for importers
	// of formats that are no provider's own.
	NewMessage(role Role, blocks []Block) (*Message, error)

	// Validate checks a request against the provider's rules. It returns nil
	// or a *Refusal with the provider's own error text.
	Validate(req *Request, m Model) error
}

// Refusal is a provider's answer to a request that breaks its rules.
type Refusal struct {
	Status  int    // HTTP status
	Type    string // the provider's error type, such as "invalid_request_error"
	Code    string // OpenAI's error code, "" if none
	Param   string // OpenAI's param, "" if none
	Message string // the provider's text
}

func (r *Refusal) Error() string { return r.Message }

// Reply is what a provider answered to one request, streamed or not.
type Reply struct {
	Format Format
	ID     string // the provider's id of the response
	Model  string // that answered, as the provider names it
	// Messages are the reply as the elements that a client sends back in the
	// history of its next request, so that they match those by digest: the
	// assistant message of Messages and Chat Completions (of several choices
	// the first), the output items of Responses. Empty texts, which providers
	// take from no client, are left out. Of a reply that was cut off they are
	// what can be sent back: words so far, and whole calls.
	Messages []*Message
	Usage    Usage // as reported so far; tokens from the cache count once
	// Stop says why the reply ended, in the provider's own word: stop_reason,
	// finish_reason, or the incomplete reason or else the status of a
	// response. It is "" before that.
	Stop string
	// Complete is set if the reply came to its end as the format says. A
	// reply that was cut off, or ended in an error, is not.
	Complete bool
	// Refusal is the error that the provider answered or ended with, nil if
	// there is none. Status is that of the HTTP answer, or the one that the
	// error's type has where it came inside a stream.
	Refusal *Refusal
	// Overflow is set if the prompt was too long: as a refusal, or because
	// prompt and output together filled the window.
	Overflow *Overflow
	// Dropped lists the thinking blocks of the request that the provider left
	// out, as it names them (Anthropic's input_transformations).
	Dropped []DroppedBlock
	// ContextManagement is what the provider did to the request by itself, as
	// it came (Anthropic's applied edits); nil if nothing was said.
	ContextManagement json.RawMessage
}

// Overflow is what an answer says about a prompt that did not fit. Both are in
// the provider's tokens, and 0 where it does not say.
type Overflow struct {
	// Tokens is the size of the prompt, or of prompt and output together if
	// the reply has no Refusal: then the output filled the window.
	Tokens int
	// Limit is the most the prompt may be.
	Limit int
}

// DroppedBlock is a thinking block that a provider left out of the prompt.
type DroppedBlock struct {
	Path   string // where it stood, such as "messages.3.content.0"
	Reason string // such as "prefix_binding_mismatch"
}

// Assembler makes a Reply of the events of one stream. It is for one
// goroutine.
type Assembler interface {
	// Feed takes the next event: its type, "" if the stream names none, and
	// its data. The data is not kept. Types and fields that are not known are
	// passed over. An error means that the stream is not of the format;
	// nothing more is read then, and every later Feed gives it again.
	Feed(event string, data []byte) error

	// Reply is what has come so far. It is never nil; the error is the one
	// that Feed gave. It may be asked for at any time, and again.
	Reply() (*Reply, error)
}

// Joiner makes one stream for a client of the streams of several replies:
// between them a model called tools that furl answers, which the client does
// not know. The events of the first stream stay as they came until it has such
// a call. A Joiner is for one goroutine.
type Joiner interface {
	// Event gives the bytes that the client gets for an event now: its own,
	// others, or none. The type is "" if the stream names none; data is nil if
	// the event has none; raw is the event as it came. None of them is kept.
	Event(event string, data, raw []byte) []byte

	// Called reports whether this stream has a call of one of furl's tools.
	Called() bool

	// Next says that another stream follows.
	Next()

	// End gives what was held back of this stream's end, with the usage of
	// all. If quiet is set, the model called nothing but furl's tools.
	End(used Usage, quiet bool) []byte
}

// ReplyCodec is what the codecs of providers' formats can do besides Codec,
// found by assertion: understand answers, and speak as the provider does.
type ReplyCodec interface {
	// NewAssembler returns an Assembler for one streamed reply.
	NewAssembler() Assembler

	// DecodeReply understands an answer that was not streamed, errors
	// included. A refusal is no error; an error means that the body is not
	// what the format answers with. The Reply aliases the body.
	DecodeReply(status int, body []byte) (*Reply, error)

	// ErrorBody is the body of an answer that refuses a request.
	ErrorBody(r *Refusal, requestID string) []byte

	// ErrorEvent is an error in the midst of a stream: the event's type, ""
	// if the format names none, and its data.
	ErrorEvent(r *Refusal) (event string, data []byte)
}
