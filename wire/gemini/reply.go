package gemini

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var _ protocol.ReplyCodec = codec{}

// DecodeReply decodes the body of a response: a reply, the list of pieces that
// streamGenerateContent answers without alt=sse, the count of countTokens (then only
// Usage.Input is set), or an error.
func (codec) DecodeReply(status int, body []byte) (*protocol.Reply, error) {
	d := newDraft()
	if status >= badRequest {
		d.refuse(status, body)
		return d.finish()
	}
	r := rawjson.NewReader(body)
	switch r.Kind() {
	case '[':
		for range r.Elements() {
			if err := d.piece(r.Raw()); err != nil {
				return nil, fmt.Errorf("decode Gemini reply: %w", err)
			}
		}
		if err := r.End(); err != nil {
			return nil, fmt.Errorf("decode Gemini reply: %w", err)
		}
	case '{':
		if err := d.piece(body); err != nil {
			return nil, fmt.Errorf("decode Gemini reply: %w", err)
		}
		if count := rawjson.NewReader(value(body, "totalTokens")); !d.replied && d.reply.Refusal == nil {
			n, ok := count.Int()
			if !ok {
				return nil, errors.New("decode Gemini reply: it has neither candidates nor totalTokens")
			}
			d.reply.Usage.Input = n
		}
	default:
		return nil, errors.New("decode Gemini reply: expected an object or a list")
	}
	if d.reply.Refusal == nil {
		d.reply.Complete = true
	}
	reply, err := d.finish()
	if err != nil {
		return nil, fmt.Errorf("decode Gemini reply: %w", err)
	}
	return reply, nil
}

// draft is an incomplete reply.
type draft struct {
	reply   protocol.Reply
	role    string
	parts   []draftPart
	replied bool // a piece has candidates, feedback or usage
}

// draftPart is a part of the reply. A text that may continue has its pieces.
type draftPart struct {
	raw       []byte // nil: a text
	text      []byte
	thought   bool
	signature []byte
}

// maxParts is the largest number of parts of a reply; more are an error.
const maxParts = 100_000

func newDraft() *draft {
	return &draft{reply: protocol.Reply{Format: furl.FormatGemini}, role: roleModel}
}

// piece adds a piece of the reply, or all of it.
func (d *draft) piece(data []byte) error {
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return errors.New("expected an object")
	}
	failed := false
	for key := range fields(r, nil) {
		switch key {
		case "error":
			failed = r.Kind() == '{' || r.Kind() == '"'
		case "candidates":
			d.replied = true
			if r.Kind() != '[' {
				continue
			}
			for i := range r.Elements() {
				if err := d.candidate(i, r); err != nil {
					return err
				}
			}
		case "promptFeedback":
			d.replied = true
			// A blocked prompt has no candidate.
			if reason := text(r.Raw(), "blockReason"); reason != "" {
				d.reply.Stop, d.reply.Complete = reason, true
			}
		case "usageMetadata":
			d.replied = true
			if u, err := DecodeUsage(r.Raw()); err == nil { // one of another type is ignored
				d.reply.Usage = u
			}
		case "modelVersion":
			keep(r, &d.reply.Model)
		case "responseId":
			keep(r, &d.reply.ID)
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if failed {
		d.refuse(0, data)
	}
	return nil
}

// keep reads the first non-empty string.
func keep(r *rawjson.Reader, to *string) {
	if s, ok := r.String(); ok && *to == "" {
		*to = s
	}
}

// candidate reads an element of candidates. Only the one with index 0 is used.
func (d *draft) candidate(i int, r *rawjson.Reader) error {
	if r.Kind() != '{' {
		return nil
	}
	index := i
	var content []byte
	stop := ""
	for key := range fields(r, nil) {
		switch key {
		case "index":
			if n, ok := r.Int(); ok {
				index = n
			}
		case "content":
			content = r.Raw()
		case "finishReason":
			stop, _ = r.String()
		}
	}
	if index != 0 || r.Err() != nil {
		return nil
	}
	if stop != "" && stop != "FINISH_REASON_UNSPECIFIED" {
		d.reply.Stop, d.reply.Complete = stop, true
	}
	if role := text(content, "role"); role != "" {
		d.role = role
	}
	list := value(content, "parts")
	if rawjson.NewReader(list).Kind() == '{' {
		return d.add(list)
	}
	for _, part := range rawjson.Elements(list) {
		if err := d.add(part); err != nil {
			return err
		}
	}
	return nil
}

// add adds a part. A text continues the text before it.
func (d *draft) add(raw []byte) error {
	p := readPart(rawjson.NewReader(raw), nil)
	plain := p.data == "text" && p.unknown == "" && !hasAttributes(raw)
	words := p.value.Text()
	if n := len(d.parts); plain && words != "" && n > 0 {
		if last := &d.parts[n-1]; last.raw == nil && last.thought == p.thought && len(last.text) > 0 {
			last.text = append(last.text, words...)
			if len(p.signature.Inside()) > 0 {
				last.signature = bytes.Clone(p.signature.Raw)
			}
			return nil
		}
	}
	if len(d.parts) == maxParts {
		return fmt.Errorf("more than %d parts", maxParts)
	}
	switch {
	case plain && words == "" && len(p.signature.Inside()) == 0:
	case plain:
		d.parts = append(d.parts, draftPart{text: []byte(words), thought: p.thought, signature: bytes.Clone(p.signature.Raw)})
	default:
		d.parts = append(d.parts, draftPart{raw: bytes.Clone(raw)})
	}
	return nil
}

// hasAttributes reports whether a part has fields that describe its content.
func hasAttributes(raw []byte) (found bool) {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return false
	}
	for key := range fields(r, nil) {
		found = found || attributes[key]
	}
	return found
}

func (p *draftPart) encode() []byte {
	if p.raw != nil {
		return p.raw
	}
	out := rawjson.AppendString([]byte(`{"text":`), string(p.text))
	if p.thought {
		out = append(out, `,"thought":true`...)
	}
	if !isNull(p.signature) {
		out = append(append(out, `,"thoughtSignature":`...), p.signature...)
	}
	return append(out, '}')
}

// refuse records an error body, or an error in a stream (status 0).
func (d *draft) refuse(status int, body []byte) {
	code, name, message := parseError(body)
	if status == 0 {
		status = code
	}
	if status < 400 {
		status = codeOf(name)
	}
	if name == "" {
		name = statusOf(status)
	}
	d.reply.Refusal = &protocol.Refusal{Status: status, Type: name, Message: message}
	d.reply.Complete = false
	d.reply.Overflow = parseOverflow(status, message)
}

// finish returns the reply. The draft can be extended further.
func (d *draft) finish() (*protocol.Reply, error) {
	reply := d.reply
	if len(d.parts) == 0 {
		return &reply, nil
	}
	parts := make([][]byte, len(d.parts))
	for i := range d.parts {
		parts[i] = d.parts[i].encode()
	}
	raw := append([]byte(`{"parts":`), bracketed(parts...)...)
	raw = rawjson.AppendString(append(raw, `,"role":`...), d.role)
	m, err := codec{}.DecodeMessage(append(raw, '}'))
	if err != nil {
		return &reply, err
	}
	reply.Messages = []*furl.Message{m}
	return &reply, nil
}
