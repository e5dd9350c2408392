package gemini

import (
	"bytes"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// NewAssembler returns an Assembler for one streamed reply. Each event is a piece with the
// form of a whole reply. Of several candidates it uses the one with index 0.
func (codec) NewAssembler() protocol.Assembler { return &assembler{draft: newDraft()} }

type assembler struct {
	draft *draft
	size  int
	ended bool // by an error of the provider
	err   error
}

// maxStream is the largest stream that is assembled, in bytes.
const maxStream = 64 << 20

func (a *assembler) Feed(_ string, data []byte) error {
	if a.err != nil || a.ended || len(bytes.TrimSpace(data)) == 0 {
		return a.err
	}
	if a.size += len(data); a.size > maxStream {
		a.err = fmt.Errorf("read Gemini stream: the reply is larger than %d bytes", maxStream)
	} else if err := a.draft.piece(data); err != nil {
		a.err = fmt.Errorf("read Gemini stream: %w", err)
	}
	a.ended = a.draft.reply.Refusal != nil
	return a.err
}

// Reply returns the reply as far as it arrived.
func (a *assembler) Reply() (*protocol.Reply, error) {
	reply, err := a.draft.finish()
	if a.err != nil {
		reply.Complete = false
		return reply, a.err
	}
	if err != nil {
		return reply, fmt.Errorf("read Gemini stream: %w", err)
	}
	return reply, nil
}

// Silent implements wire.API: a piece without parts and without an end says nothing.
func (codec) Silent(event string, data []byte) bool {
	p, err := readPiece(data)
	return event == "" && err == nil && !p.failed && p.finish == "" && !p.blocked && len(p.parts) == 0
}

// Ends implements wire.API. The piece with finishReason is the last one.
func (codec) Ends(_ string, data []byte) bool {
	p, err := readPiece(data)
	return err == nil && (p.failed || p.blocked || p.finish != "")
}

// Continues implements wire.API. The reason is the same with and without calls.
func (codec) Continues(stop string) bool { return stop == "STOP" }

// Delta implements wire.API.
func (codec) Delta(_ string, data []byte) (d protocol.Delta, ok bool) {
	piece, err := readPiece(data)
	if err != nil {
		return d, false
	}
	for _, raw := range piece.parts {
		p := readPart(rawjson.NewReader(raw), nil)
		switch {
		case p.data == "functionCall" && d.Text == "":
			return protocol.Delta{Kind: furl.KindCall, ID: text(p.value.Raw, "id"), Name: text(p.value.Raw, "name")}, true
		case p.data != "text":
		case p.thought && (d.Text == "" || d.Kind == furl.KindThinking):
			d.Kind, d.Text = furl.KindThinking, d.Text+p.value.Text()
		case !p.thought && (d.Text == "" || d.Kind == furl.KindText):
			d.Kind, d.Text = furl.KindText, d.Text+p.value.Text()
		}
	}
	return d, d.Text != ""
}

// piece is what is used of a piece of a stream, or of a body.
type piece struct {
	parts   [][]byte // of the candidate with index 0
	finish  string
	failed  bool
	blocked bool // the prompt was refused for its content
	usage   bool
}

func readPiece(data []byte) (p piece, err error) {
	r := rawjson.NewReader(data)
	if r.Kind() != '{' {
		return p, fmt.Errorf("read Gemini piece: expected an object")
	}
	for key := range fields(r, nil) {
		switch key {
		case "error":
			p.failed = r.Kind() == '{' || r.Kind() == '"'
		case "promptFeedback":
			p.blocked = text(r.Raw(), "blockReason") != ""
		case "usageMetadata":
			p.usage = r.Kind() == '{'
		case "candidates":
			for i, candidate := range rawjson.Elements(r.Raw()) {
				if indexOf(candidate, i) == 0 {
					p.parts = rawjson.Elements(value(value(candidate, "content"), "parts"))
					p.finish = text(candidate, "finishReason")
				}
			}
		}
	}
	return p, r.End()
}

// indexOf returns the index of a candidate, which is at position i of the list.
func indexOf(candidate []byte, i int) int {
	r := rawjson.NewReader(value(candidate, "index"))
	if n, ok := r.Int(); ok {
		return n
	}
	return i
}
