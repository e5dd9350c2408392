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
