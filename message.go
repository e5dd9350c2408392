package furl

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// Role says who speaks in a message.
type Role string

// The roles of every supported wire format. Anthropic carries tool results in
// user messages; OpenAI gives them a role (Chat Completions) or an item type
// (Responses) of their own, both decoded as RoleTool.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Known reports whether a role is one of the above. An item of Responses may state
// none, and there may be new ones.
func (r Role) Known() bool {
	switch r {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
		return true
	}
	return false
}

// Format names a wire format: the shape a message's Raw bytes have.
type Format string

// The supported wire formats. One Message is one element of the request's
// list: a message of Messages or Chat Completions, an item of Responses, a content of Gemini.
const (
	FormatAnthropic Format = "anthropic"        // Anthropic Messages
	FormatChat      Format = "openai-chat"      // OpenAI Chat Completions
	FormatResponses Format = "openai-responses" // OpenAI Responses
	FormatGemini    Format = "gemini"           // generateContent of the Gemini API and Vertex AI
)

// Message is one message as it was on the wire, decoded beside its bytes.
// A recorded message is never changed; treat it as read-only.
type Message struct {
	Role   Role
	Format Format
	// Raw is the message's exact bytes on the wire, nil for messages that furl
	// makes.
	Raw json.RawMessage
	// Blocks are the message's parts in wire order. String content is one text
	// block.
	Blocks []Block
	// Digest identifies the canonical blocks; see Message.Seal.
	Digest Digest
}

// Kind says what a block is.
type Kind uint8

// The kinds of block.
const (
	KindText     Kind = iota // words
	KindThinking             // reasoning, signed or encrypted or plain
	KindCall                 // a tool call
	KindResult               // the result of a tool call
	KindImage                // an image by itself
	KindDocument             // a document (PDF, file) by itself
	KindOpaque               // anything furl passes on without understanding it
)

var kindNames = [...]string{"text", "thinking", "call", "result", "image", "document", "opaque"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", k)
}

// Half says which half of a pair a block is.
type Half uint8

// The halves of a pair. Most blocks are none.
const (
	HalfCall   Half = iota + 1 // a call
	HalfAnswer                 // its answer
)

// Block is one part of a message.
type Block struct {
	Kind Kind
	// Text is the text of a text or thinking block, and the text parts of a
	// result, joined by newlines.
	Text string
	// ID is the id of a call; on a result, of the call it answers; on opaque
	// and thinking blocks, of the item, if any.
	ID string
	// Name is the tool's name on a call, the wire's type on an opaque block.
	Name string
	// Args are a call's arguments: a JSON object, or a JSON string for OpenAI's
	// free-form tools. Never empty on a call.
	Args json.RawMessage
	// Error marks a result that reports a failure; the wire packages have the
	// rules.
	Error bool
	// ErrorText marks a result without Error whose first lines read like a
	// failure, in a format or from an agent that has no flag for failures. It
	// is a guess. The wire packages have the rules.
	ErrorText bool
	// Media lists the block's images and documents: one on KindImage and
	// KindDocument, any number on a result.
	Media []Media
	// Signature is the length in bytes of signed or encrypted content (thinking
	// signature, redacted data, encrypted_content), which counts as part of the
	// prompt.
	Signature int
	// CacheMark reports a cache breakpoint of the client.
	CacheMark bool
	// Own marks a call that furl answered, and its result. The model sees both,
	// the client neither.
	Own bool
	// Observation marks a text or an image of the user that is a tool's output:
	// some agents let the model write commands in its text, and send the output
	// back as words of the user. The wire does not show this; importers set it.
	// See IsResult.
	Observation bool
	// Fixed marks a block that is always sent as recorded, with its whole unit: it
	// defines tools, or the wire package does not know its type. See State.Fixed.
	Fixed bool
	// Deferred marks the definition of a tool that is not in the prompt until a block
	// references it. Only blocks of Request.Preamble have it.
	Deferred bool
	// Half is set on two opaque blocks with one ID that are a pair: a call that a
	// result (KindResult) does not answer, as of a tool that the provider runs, and
	// what answers it. They may be in different messages, with results of the
	// client between, and are in one unit.
	Half Half
	// Caller is the ID of the call run by the provider whose program made this
	// call; "" if the model made it.
	Caller string
	// Start and End delimit the block in Message.Raw. Both are zero if it has
	// no bytes there.
	Start, End int
	// Tokens is the size counted when the message was recorded (Measure). Zero:
	// not counted.
	Tokens int
}

// IsResult reports whether the block is a tool's output: a result, or an
// observation, which has no call id.
func (b *Block) IsResult() bool { return b.Kind == KindResult || b.Observation }

// IsCompaction reports whether the block is a provider's own summary, which both providers
// call a compaction. The provider reads nothing before the newest one, so a client may send
// it without what it replaced. Only the provider can read the secret in it. A block without
// an id and with hardly any secret is not unique, and does not count.
func (b *Block) IsCompaction() bool {
	return b.Kind == KindOpaque && (b.Name == "compaction" || b.Name == "compaction_summary") &&
		(b.Signature >= minCompaction || b.Signature > 0 && b.ID != "")
}

// minCompaction is the length in bytes of a secret that no two compactions share.
const minCompaction = 32

// HasCompaction reports whether a block of the message is a compaction.
func (m *Message) HasCompaction() bool {
	for i := range m.Blocks {
		if m.Blocks[i].IsCompaction() {
			return true
		}
	}
	return false
}

// observes reports whether a message of the user starts with an observation.
func (m *Message) observes() bool {
	return m.Role == RoleUser && len(m.Blocks) > 0 && m.Blocks[0].Observation
}

// Media is an image or a document inside a block.
type Media struct {
	Kind          Kind   // KindImage or KindDocument
	Type          string // media type, such as "image/png"; "" when unknown
	Bytes         int    // length on the wire, in bytes (base64 length, or the URL's)
	Width, Height int    // pixels, 0 when unknown
	Digest        Digest // of the bytes on the wire
}

// Counter counts the tokens of a text. Counts must be deterministic. Images and
// documents cost what its method CountMedia(Media) int says, if it has one.
type Counter interface {
	Count(text string) int
}

// Measure counts the Tokens of blocks that have none yet.
func (m *Message) Measure(c Counter) {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Tokens == 0 {
			b.Tokens = b.measure(c)
		}
	}
}

// envelopeTokens is what the wrapping of a block costs beyond its words: role
// markers, type names, ids. Calibration (package token) absorbs the rest.
const envelopeTokens = 4

func (b *Block) measure(c Counter) int {
	n := envelopeTokens
	if b.Text != "" {
		n += c.Count(b.Text)
	}
	if b.Name != "" {
		n += c.Count(b.Name)
	}
	if len(b.Args) > 0 {
		n += c.Count(string(b.Args))
	}
	n = b.measureSigned(n)
	mc, _ := c.(interface{ CountMedia(Media) int })
	for _, m := range b.Media {
		if mc != nil {
			n += mc.CountMedia(m)
		} else {
			n += m.Bytes / 4
		}
	}
	return n
}

// measureSigned corrects the size of a block by what is signed or encrypted in
// it. On thinking that is the same reasoning once more, of which the text may
// be a summary: about 280 bytes of text carry no content, and then eleven for two
// tokens (docs/internals/sizes.md). Elsewhere it is content of its own, in base64.
func (b *Block) measureSigned(n int) int {
	if b.Kind != KindThinking {
		return n + b.Signature/4
	}
	return max(n, envelopeTokens+(b.Signature-280)*2/11)
}

// Tokens is the size of the whole message, the sum of its blocks'.
func (m *Message) Tokens() int {
	n := 0
	for i := range m.Blocks {
		n += m.Blocks[i].Tokens
	}
	return n
}

// Bytes returns the size of the message on the wire, or of its text if it has
// no bytes.
func (m *Message) Bytes() int {
	if m.Raw != nil {
		return len(m.Raw)
	}
	n := 0
	for i := range m.Blocks {
		n += len(m.Blocks[i].Text) + len(m.Blocks[i].Args)
	}
	return n
}

// TextMessage returns a message made by furl: one text block, no raw bytes.
func TextMessage(role Role, text string) *Message {
	m := &Message{Role: role, Blocks: []Block{{Kind: KindText, Text: text}}}
	m.Seal()
	return m
}

// Texts returns the block's text and the strings in a call's arguments, in
// order, decoded, without object keys.
func (b *Block) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		if b.Text != "" && !yield(b.Text) {
			return
		}
		eachString(string(b.Args), yield)
	}
}

// jsonStrings returns the strings in a JSON value in order, decoded, without
// object keys. An invalid string is returned as it is.
func jsonStrings(value string) iter.Seq[string] {
	return func(yield func(string) bool) { eachString(value, yield) }
}

// eachString needs no nesting: a string is a key where a colon follows it.
func eachString(value string, yield func(string) bool) {
	for {
		start := strings.IndexByte(value, '"')
		if start < 0 {
			return
		}
		value = value[start:]
		end := quotedEnd(value)
		quoted := value[:end]
		value = value[end:]
		if !strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), ":") && !yield(unquote(quoted)) {
			return
		}
	}
}

// quotedEnd is the length of the string literal that s begins with, or of s
// when nothing closes it.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

func unquote(quoted string) string {
	if strings.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal([]byte(quoted), &s) == nil {
			return s
		}
	}
	return strings.TrimSuffix(quoted[1:], `"`)
}
