package transcript

import (
	"cmp"
	"encoding/json"
	"regexp"

	"github.com/furlhq/furl"
)

// iflowSession is the form of iFlow's session ids.
var iflowSession = regexp.MustCompile(`^session-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// isIFlowRecord recognizes the records of iFlow. They are Claude Code's but for the form of the session
// id, and results, which are Gemini CLI's.
func isIFlowRecord(o object) bool {
	switch o.str("type") {
	case "user", "assistant":
		return o.has("uuid", "message") && iflowSession.MatchString(o.str("sessionId"))
	}
	return false
}

func isIFlow(p *probe) bool { return p.is('l', '{') && p.any(isIFlowRecord) }

// readIFlow reads a session of iFlow CLI: JSON Lines of {uuid, parentUuid, sessionId, type, message{role, content, model,
// usage}}, with Anthropic's blocks. The content of a result is Gemini CLI's: {callId, responseParts{functionResponse},
// resultDisplay}, or functionResponse alone. iFlow uses Chat Completions. Known from a description of files
// that it wrote in 2026 (Engram, docs on session formats); its package was not at hand.
func readIFlow(in *input) ([]*Session, error) {
	var list []iflowRecord
	var models []string
	for n, rec := range in.objects() {
		r := iflowRecord{line: n}
		if err := lenient(rec, &r); err != nil {
			in.skip(n, "%v", err)
			continue
		}
		if r.Message.Model != "" {
			models = append(models, r.Message.Model)
		}
		list = append(list, r)
	}
	model := commonModel(models)
	f := &iflow{scribe: newScribe(in, wireOf(model, furl.FormatChat), model), after: map[string]ref{}}
	for i := range list {
		f.record(&list[i])
	}
	f.say()
	out := f.finish()
	out.Messages = f.messages
	return []*Session{out}, nil
}

type iflowRecord struct {
	line int

	UUID      string `json:"uuid"`
	Parent    string `json:"parentUuid"`
	SessionID string `json:"sessionId"`
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Cwd       string `json:"cwd"`
	Sidechain bool   `json:"isSidechain"`
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		} `json:"usage"`
	} `json:"message"`
	Tool struct {
		Status string `json:"status"`
	} `json:"toolUseResult"`
}

// iflow reads the records of a session.
type iflow struct {
	*scribe
	after    map[string]ref // by record: the last message at it
	waiting  []string       // records while results are held back, or a reply may go on
	last     string         // the record before
	messages int

	reply  []*iflowRecord // the records of the newest reply
	pieces []piece        // of them
}

func (f *iflow) record(r *iflowRecord) {
	switch {
	case r.Type != "user" && r.Type != "assistant":
		f.b.in.skip(r.line, "unknown type %q", r.Type)
		return
	case r.Sidechain:
		f.b.in.skip(r.line, "a record of a sub-agent")
		return
	}
	f.b.ID, f.b.Project = cmp.Or(f.b.ID, r.SessionID), cmp.Or(f.b.Project, r.Cwd)
	f.messages++
	if len(f.reply) > 0 && (r.Type == "user" || r.Parent != f.last || r.Message.ID == "" || r.Message.ID != f.reply[0].Message.ID) {
		f.say()
	}
	if r.Parent != f.last {
		f.settle()
		f.place()
		if to, known := f.after[r.Parent]; known && to != f.b.last { // the user went back
			f.b.rewind(parseTime(r.Timestamp), to)
		}
	}
	if r.Type == "user" {
		f.said(r)
	} else {
		f.reply = append(f.reply, r)
		f.pieces = append(f.pieces, iflowPieces(r.Message.Content)...)
	}
	f.last = r.UUID
	f.waiting = append(f.waiting, r.UUID)
	f.place()
}

// place notes where the newest records are in the conversation, unless results or a reply are held back.
func (f *iflow) place() {
	if len(f.held) > 0 || len(f.reply) > 0 {
		return
	}
	for _, id := range f.waiting {
		f.after[id] = f.b.last
	}
	f.waiting = nil
}

// say adds the newest reply.
func (f *iflow) say() {
	if len(f.reply) == 0 {
		return
	}
	first, last := f.reply[0], f.reply[len(f.reply)-1]
	u := last.Message.Usage
	scribe := f.scribe
	scribe.reply(parseTime(first.Timestamp), furl.Exchange{
		Model: cmp.Or(first.Message.Model, f.b.Model), ResponseID: first.Message.ID, Usage: furl.Usage{Input: max(u.Input, 0), Output: max(u.Output, 0)},
	})
	f.assistant(parseTime(last.Timestamp), first.line, f.pieces)
	f.reply, f.pieces = nil, nil
	f.place()
}

// said adds words of the user, or results.
func (f *iflow) said(r *iflowRecord) {
	at := parseTime(r.Timestamp)
	var pieces []piece
	for _, b := range claudeBlocks(r.Message.Content) {
		switch b.Type {
		case "tool_result":
			res := iflowResult(b.Content)
			res.id = f.r.answers(b.Answers)
			res.failed = res.failed || b.IsError || r.Tool.Status == "error" || r.Tool.Status == "cancelled"
			f.result(at, r.line, res)
		case "text":
			if b.Text != "" {
				pieces = append(pieces, words(b.Text))
			}
		case "image":
			for _, pic := range b.image() {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
		}
	}
	if len(pieces) > 0 {
		f.user(at, r.line, pieces...)
	}
}

// iflowPieces returns the texts and calls of a reply.
func iflowPieces(content json.RawMessage) (pieces []piece) {
	for _, b := range claudeBlocks(content) {
		switch b.Type {
		case "text":
			if b.Text != "" {
				pieces = append(pieces, words(b.Text))
			}
		case "tool_use":
			pieces = append(pieces, piece{kind: furl.KindCall, id: b.ID, name: b.Name, args: b.Input})
		}
	}
	return pieces
}

// iflowResult reads the content of a result: Gemini CLI's, or Anthropic's.
func iflowResult(content json.RawMessage) piece {
	var outcome struct {
		Parts    json.RawMessage `json:"responseParts"`
		Response json.RawMessage `json:"functionResponse"`
	}
	if lenient(content, &outcome) == nil {
		switch {
		case len(outcome.Parts) > 0:
			return geminiOutcome(geminiList(outcome.Parts))
		case len(outcome.Response) > 0:
			return geminiOutcome(geminiList(content))
		}
	}
	res := piece{kind: furl.KindResult}
	for _, b := range claudeBlocks(content) {
		if b.Text != "" {
			if res.text != "" {
				res.text += "\n"
			}
			res.text += b.Text
		}
	}
	return res
}
