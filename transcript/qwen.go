package transcript

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// isQwen recognizes the records of Qwen Code. They are Claude Code's but for the message, which has
// Gemini's parts.
func isQwen(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "user", "assistant", "tool_result":
			return o.has("uuid", "sessionId") && o.object("message").kind("parts") == '['
		}
		return o.str("type") == "system" && o.has("uuid", "sessionId", "systemPayload")
	})
}

// readQwen reads a chat of Qwen Code: JSON Lines of {uuid, parentUuid, type, message{role, parts[]}}. Each
// reply has its usage. Records of the type system repeat it (ui_telemetry), and have what a compression
// put in place of the conversation. Sub-agents have a file each. Qwen Code uses Chat Completions, or
// Messages for Claude. Seen in Qwen Code 0.24.4.
func readQwen(in *input) ([]*Session, error) {
	var list []qwenRecord
	var models []string
	for n, rec := range in.objects() {
		r := qwenRecord{line: n}
		if err := lenient(rec, &r); err != nil {
			in.skip(n, "%v", err)
			continue
		}
		if r.Model != "" {
			models = append(models, r.Model)
		}
		list = append(list, r)
	}
	model := commonModel(models)
	if model == "" && len(list) > 0 && list[0].AgentID != "" {
		model = qwenParentModel(in)
	}
	q := &qwen{scribe: newScribe(in, wireOf(model, furl.FormatChat), model), after: map[string]ref{}}
	for i := range list {
		q.record(&list[i])
	}
	q.side(in)
	out := q.finish()
	out.Messages = q.messages
	return []*Session{out}, nil
}

// qwenParentModel returns the model of the session that started a sub-agent, whose file names none: it
// is chats/ID.jsonl beside subagents/ID.
func qwenParentModel(in *input) string {
	chat := in.beside(filepath.Join("..", "..", "chats", filepath.Base(in.dir)+".jsonl"))
	for _, line := range splitLines(chat) {
		if model := objectOf(line).str("model"); model != "" {
			return model
		}
	}
	return ""
}

// qwen reads the records of a chat.
type qwen struct {
	*scribe
	after    map[string]ref // by record: the last message at it
	waiting  []string       // records while results are held back
	last     string         // the record before
	messages int
	compress furl.Usage // of the newest compression
	others   furl.Usage // of requests of agents without a file
	requests int        // of them
}

type qwenRecord struct {
	line int

	UUID       string          `json:"uuid"`
	Parent     string          `json:"parentUuid"`
	SessionID  string          `json:"sessionId"`
	Timestamp  string          `json:"timestamp"`
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	Cwd        string          `json:"cwd"`
	Model      string          `json:"model"`
	AgentID    string          `json:"agentId"`
	Message    qwenContent     `json:"message"`
	Usage      qwenUsage       `json:"usageMetadata"`
	Window     int             `json:"contextWindowSize"`
	System     qwenSystem      `json:"systemPayload"`
	ToolResult qwenToolOutcome `json:"toolCallResult"`
}

type qwenContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type qwenUsage struct {
	Prompt   int `json:"promptTokenCount"`
	Output   int `json:"candidatesTokenCount"`
	Thoughts int `json:"thoughtsTokenCount"`
	Total    int `json:"totalTokenCount"`
	Cached   int `json:"cachedContentTokenCount"`
}

// usage converts the counts: the prompt includes what was read from the cache. Whether the output
// includes the thoughts depends on the provider; the total shows it.
func (u qwenUsage) usage() furl.Usage {
	cached := min(u.Cached, u.Prompt)
	out := furl.Usage{Input: u.Prompt - cached, CacheRead: cached, Output: u.Output, Reasoning: u.Thoughts}
	if u.Total == u.Prompt+u.Output+u.Thoughts {
		out.Output += u.Thoughts
	}
	return out
}

type qwenSystem struct {
	Event   qwenEvent     `json:"uiEvent"`
	History []qwenContent `json:"compressedHistory"`
	Info    struct {
		Before int `json:"originalTokenCount"`
	} `json:"info"`
}

// qwenEvent is a response, as Qwen Code counts it.
type qwenEvent struct {
	Name     string `json:"event.name"`
	PromptID string `json:"prompt_id"`
	Agent    string `json:"subagent_type"`
	Input    int    `json:"input_token_count"`
	Output   int    `json:"output_token_count"`
	Cached   int    `json:"cached_content_token_count"`
	Thoughts int    `json:"thoughts_token_count"`
	Total    int    `json:"total_token_count"`
}

func (e *qwenEvent) usage() furl.Usage {
	return qwenUsage{e.Input, e.Output, e.Thoughts, e.Total, e.Cached}.usage()
}

type qwenToolOutcome struct {
	Status string `json:"status"`
}

func (q *qwen) record(r *qwenRecord) {
	at := parseTime(r.Timestamp)
	if q.b.ID == "" {
		q.begin(r)
	}
	if r.Parent != q.last {
		q.settle()
		q.place()
		if to, known := q.after[r.Parent]; known && to != q.b.last { // the user went back
			q.b.rewind(at, to)
		}
	}
	switch r.Type {
	case "user":
		q.messages++
		q.user(at, r.line, geminiPieces(r.Message.Parts)...)
	case "assistant":
		q.messages++
		q.reply(at, furl.Exchange{Model: cmp.Or(r.Model, q.b.Model), Usage: r.Usage.usage()})
		if r.Window > 0 {
			q.b.window(r.Model, r.Window)
		}
		q.assistant(at, r.line, geminiPieces(r.Message.Parts))
	case "tool_result":
		q.messages++
		q.outcome(at, r)
	case "system":
		q.event(at, r)
	default:
		q.b.in.skip(r.line, "unknown type %q", r.Type)
	}
	q.last = r.UUID
	q.waiting = append(q.waiting, r.UUID)
	q.place()
}

// place notes where the newest records are in the conversation, unless results are held back.
func (q *qwen) place() {
	if len(q.held) > 0 {
		return
	}
	for _, id := range q.waiting {
		q.after[id] = q.b.last
	}
	q.waiting = nil
}

// begin takes what the first record says of the session. A file of a sub-agent names its session.
func (q *qwen) begin(r *qwenRecord) {
	q.b.ID, q.b.Project = r.SessionID, r.Cwd
	if r.AgentID != "" {
		q.b.ID, q.b.Parent = r.AgentID, r.SessionID
	}
}

// outcome adds the results of a record. Chat Completions have no images in results; they follow in
// a message of the user.
func (q *qwen) outcome(at time.Time, r *qwenRecord) {
	for i := range r.Message.Parts {
		p := &r.Message.Parts[i]
		if p.FunctionResponse == nil {
			continue
		}
		res := geminiOutcome([]geminiPart{*p})
		for _, sub := range p.FunctionResponse.Parts {
			if sub.InlineData != nil {
				res.images = append(res.images, picture{mime: sub.InlineData.MimeType, data: sub.InlineData.Data})
			}
		}
		res.id = q.r.answers(p.FunctionResponse.ID)
		res.failed = res.failed || r.ToolResult.Status == "error" || r.ToolResult.Status == "cancelled"
		q.result(at, r.line, res)
	}
}

// event reads a record that was not said.
func (q *qwen) event(at time.Time, r *qwenRecord) {
	e := &r.System.Event
	switch {
	case r.Subtype == "chat_compression":
		q.compression(at, r)
	case e.Name != "qwen-code.api_response":
	case strings.HasPrefix(e.PromptID, "compress-"):
		q.compress = e.usage()
	case strings.HasPrefix(e.Agent, "managed-"): // it has no file
		q.others, q.requests = q.others.Add(e.usage()), q.requests+1
	}
}

// compression replaces the conversation by what the record has.
func (q *qwen) compression(at time.Time, r *qwenRecord) {
	q.settle()
	usage := q.compress
	q.compress = furl.Usage{}
	var show []*furl.Message
	for i := range r.System.History {
		c := &r.System.History[i]
		msgs, err := q.compressed(c)
		if err != nil {
			q.b.in.skip(r.line, "compression: %v", err)
			return
		}
		show = append(show, msgs...)
	}
	if len(show) == 0 {
		return // it failed and changed nothing
	}
	summary := &furl.Summary{Text: geminiText(r.System.History[0].Parts), Model: q.b.Model, Usage: usage}
	q.b.compact(at, r.line, compaction{all: true, stage: "compact", reason: "Qwen Code compressed the conversation", show: show, before: r.System.Info.Before, summary: summary})
}

// geminiText joins the texts of parts.
func geminiText(parts []geminiPart) string {
	var texts []string
	for _, p := range geminiPieces(parts) {
		if p.text != "" {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n")
}

// compressed returns a message that a compression shows.
func (q *qwen) compressed(c *qwenContent) ([]*furl.Message, error) {
	pieces := geminiPieces(c.Parts)
	if len(pieces) == 0 {
		return nil, nil
	}
	if c.Role == "model" {
		return q.r.assistant(pieces)
	}
	return q.r.user(pieces)
}

// side says what requests cost whose texts are in no file.
func (q *qwen) side(in *input) {
	if q.requests > 0 {
		in.note("%s by agents without a file, such as the one that keeps memories, are not among the requests: %d tokens of input, of which %d were read from the cache, and %d of output",
			plural(q.requests, "request"), q.others.Prompt(), q.others.CacheRead, q.others.Output)
	}
}
