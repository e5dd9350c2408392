package transcript

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
)

// readCline reads the messages of one agent of a Cline session,
// ID.messages.json or agent_ID.messages.json: one JSON object whose messages[]
// resemble Anthropic's for every provider. Title and folder are in ID.json.
// Cline's older tasks, in the storage of its VS Code extension, have the form
// of Roo Code's.
func readCline(in *input) ([]*Session, error) {
	var sessions []*Session
	for line, rec := range in.objects() {
		c := &cline{in: in, line: line}
		sessions = append(sessions, c.read(rec))
	}
	return sessions, nil
}

func isCline(p *probe) bool {
	return p.is('{', 'l') && p.any(isClineSession)
}

func isClineSession(o object) bool {
	return o.has("version", "sessionId", "agent") && o.kind("messages") == '['
}

// clineBeside is the description of a session.
var clineBeside = &format{
	name:  "cline-beside",
	agent: "Cline",
	detect: func(p *probe) bool {
		return p.is('{') && first(p).has("session_id", "workspace_root", "messages_path")
	},
}

type clineMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	TS      float64         `json:"ts"`
	Model   struct {
		ID       string `json:"id"`
		Provider string `json:"provider"`
	} `json:"modelInfo"`
	Metrics clineMetrics `json:"metrics"`
}

type clineMetrics struct {
	Input      int `json:"inputTokens"`
	Output     int `json:"outputTokens"`
	CacheRead  int `json:"cacheReadTokens"`
	CacheWrite int `json:"cacheWriteTokens"`
}

// usage converts the counts: input includes what was read from and written to
// the cache.
func (m clineMetrics) usage() furl.Usage {
	u := furl.Usage{CacheRead: max(0, min(m.CacheRead, m.Input)), Output: m.Output}
	u.CacheWrite = max(0, min(m.CacheWrite, m.Input-u.CacheRead))
	u.Input = m.Input - u.CacheRead - u.CacheWrite
	return u
}

type cline struct {
	in   *input
	line int
	s    *scribe
}

func (c *cline) read(rec []byte) *Session {
	o := objectOf(rec)
	var list []clineMessage
	var models []string
	for i, raw := range c.in.elements(rec, "messages") {
		var m clineMessage
		if err := lenient(raw, &m); err != nil {
			c.in.skip(c.line, "message %d: %v", i+1, err)
			continue
		}
		if m.Role == "assistant" {
			models = append(models, m.Model.ID)
		}
		list = append(list, m)
	}
	model := commonModel(models)
	c.s = newScribe(c.in, wireOf(model, furl.FormatChat), model)
	c.identify(o)
	c.s.system(time.Time{}, 0, o.str("system_prompt"))
	for i := range list {
		c.message(i, &list[i])
	}
	out := c.s.finish()
	out.Messages = len(list)
	return out
}

// identify takes title and folder from the session's description. A sub-agent
// has only its parent's.
func (c *cline) identify(o object) {
	b := c.s.b
	b.ID, b.Parent = o.str("sessionId"), o.object("origin").str("parentThreadId")
	session := b.ID
	if b.Parent != "" {
		session = b.Parent
	}
	if session == "" || session != filepath.Base(session) {
		return
	}
	about := objectOf(c.in.beside(session + ".json"))
	b.Project = about.str("cwd")
	if b.Parent == "" {
		b.Title = headline(about.object("metadata").str("title"))
	}
}

func (c *cline) message(i int, m *clineMessage) {
	at := milliTime(m.TS)
	switch m.Role {
	case "user":
		c.user(at, m)
	case "assistant":
		c.reply(at, m)
	default:
		c.in.skip(c.line, "message %d: unknown role %q", i+1, m.Role)
	}
}

// user adds results, each in the file as a message of its own, and words of the
// user.
func (c *cline) user(at time.Time, m *clineMessage) {
	var pieces []piece
	for _, b := range claudeBlocks(m.Content) {
		switch b.Type {
		case "text":
			pieces = append(pieces, words(clineTyped(b.Text)))
		case "image":
			pieces = append(pieces, piece{kind: furl.KindImage, images: b.image()})
		case "file":
			pieces = append(pieces, words(rawText(b.Content)))
		case "tool_result":
			res := clineResult(b.Content)
			res.id, res.failed = c.s.r.answers(b.Answers), res.failed || b.IsError
			c.s.result(at, c.line, res)
		}
	}
	if len(pieces) > 0 {
		c.s.user(at, c.line, pieces...)
	}
}

func (c *cline) reply(at time.Time, m *clineMessage) {
	var pieces []piece
	for _, b := range claudeBlocks(m.Content) {
		switch b.Type {
		case "text":
			pieces = append(pieces, words(b.Text))
		case "thinking":
			pieces = append(pieces, piece{kind: furl.KindThinking, text: b.Thinking, signature: b.Signature})
		case "tool_use":
			pieces = append(pieces, piece{kind: furl.KindCall, id: b.ID, name: b.Name, args: rawjson.Compact(nil, b.Input)})
		}
	}
	c.s.reply(at, furl.Exchange{Model: m.Model.ID, Usage: m.Metrics.usage()})
	c.s.assistant(at, c.line, pieces)
}

var clineTag = lazyregexp.New(`^<(user_input|user_command)\b[^>]*>`)

// clineTyped removes the tag that Cline keeps around what a person typed, and
// does not send.
func clineTyped(text string) string {
	found := clineTag.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	inner, ok := strings.CutSuffix(strings.TrimSpace(text[len(found[0]):]), "</"+found[1]+">")
	if !ok {
		return text
	}
	return inner
}

// clineResult reads the content of a result: a string, or a list with an entry
// for each thing that was asked. Cline sends the list as JSON, without its
// images.
func clineResult(raw json.RawMessage) piece {
	res := piece{kind: furl.KindResult}
	entries := listOf(raw)
	if entries == nil {
		res.text = rawText(raw)
		return res
	}
	asked := 0 // entries with a success field
	failed := 0
	var out []json.RawMessage
	for _, entry := range entries {
		o := objectOf(entry)
		if o.has("success") {
			asked++
			if !o.flag("success") {
				failed++
			}
		}
		if o.kind("result") == '[' {
			entry = res.withoutImages(entry)
		}
		out = append(out, entry)
	}
	res.failed = asked > 0 && failed == asked
	text, err := marshal(out)
	if err != nil {
		text = raw
	}
	res.text = string(text)
	return res
}

// withoutImages takes the images from an entry, and returns the entry with the
// texts.
func (p *piece) withoutImages(entry []byte) []byte {
	texts := []string{}
	for _, raw := range listOf(objectOf(entry)["result"]) {
		var b claudeBlock
		if lenient(raw, &b) != nil {
			continue
		}
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "image":
			p.images = append(p.images, b.image()...)
		}
	}
	list, err := marshal(texts)
	if err != nil {
		return entry // strings always marshal
	}
	return rawjson.Replaced(entry, "result", list)
}
