package transcript

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readDroid reads a session of Factory's Droid: JSON Lines of a session_start
// and messages, which form a tree by parentId and resemble Anthropic's for
// every provider. The usage of single requests is not recorded: ID.settings.json
// has the sums, and names the provider's API.
func readDroid(in *input) ([]*Session, error) {
	d := &droid{in: in, refs: make(map[string]ref)}
	var events []droidEvent
	var models []string
	for n, rec := range in.records() {
		e := droidEvent{line: n}
		if err := lenient(rec, &e); err != nil {
			in.skip(n, "%v", err)
			continue
		}
		if !in.useMemory(int64(len(rec))) {
			return nil, nil
		}
		if e.Type == "message" && e.Message.Role == "assistant" {
			models = append(models, e.Message.ModelID)
		}
		events = append(events, e)
	}
	d.begin(commonModel(models))
	for i := range events {
		d.event(&events[i])
	}
	return []*Session{d.finish()}, nil
}

func isDroid(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "session_start":
			return o.has("id", "version", "cwd")
		case "message":
			return o.has("id", "message", "timestamp") && o.object("message").has("role", "content") && !o.object("message").has("timestamp") && !o.has("uuid")
		}
		return false
	})
}

// droidBeside are the settings of a session.
var droidBeside = &format{
	name:  "droid-beside",
	agent: "Droid",
	detect: func(p *probe) bool {
		return p.is('{') && first(p).has("assistantActiveTimeMs", "model", "interactionMode")
	},
}

type droidEvent struct {
	line int

	Type      string       `json:"type"`
	ID        string       `json:"id"`
	Parent    string       `json:"parentId"`
	Timestamp string       `json:"timestamp"`
	Message   droidMessage `json:"message"`

	// session_start
	Title   string `json:"title"`
	Cwd     string `json:"cwd"`
	Calling string `json:"callingSessionId"` // of a sub-agent

	// compaction_state
	Summary string `json:"summaryText"`
	Anchor  struct {
		ID string `json:"id"`
	} `json:"anchorMessage"` // the last message that is hidden
}

type droidMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Visibility string          `json:"visibility"`
	ModelID    string          `json:"modelId"`
	ReplyID    string          `json:"openaiMessageId"`
}

type droid struct {
	in       *input
	s        *scribe
	messages int
	last     string         // id of the message before
	refs     map[string]ref // of messages, the entry after them
	usage    furl.Usage     // of all requests
}

// begin takes the API and the sums from the settings.
func (d *droid) begin(model string) {
	name, _, _ := strings.Cut(filepath.Base(d.in.rec.File), ".jsonl")
	settings := objectOf(d.in.beside(name + ".settings.json"))
	wire := wireOf(model, furl.FormatResponses)
	switch settings.str("providerLock") {
	case "anthropic":
		wire = furl.FormatAnthropic
	case "openai":
		wire = furl.FormatResponses
	case "generic-chat-completion-api":
		wire = furl.FormatChat
	}
	d.s = newScribe(d.in, wire, model)
	sums := settings.object("tokenUsage")
	d.usage = furl.Usage{Input: sums.num("inputTokens"), CacheRead: sums.num("cacheReadTokens"), CacheWrite: sums.num("cacheCreationTokens"), Output: sums.num("outputTokens")}
}

func (d *droid) event(e *droidEvent) {
	switch e.Type {
	case "session_start":
		b := d.s.b
		if b.ID == "" {
			b.ID, b.Title, b.Project = e.ID, headline(e.Title), e.Cwd
			b.Parent = e.Calling
		}
	case "message":
		d.message(e)
	case "compaction_state":
		d.compact(e)
	}
}

func (d *droid) message(e *droidEvent) {
	d.messages++
	at, m := parseTime(e.Timestamp), &e.Message
	if to, ok := d.refs[e.Parent]; ok && e.Parent != d.last {
		d.s.settle()
		d.s.b.rewind(at, to)
	}
	defer d.follow(e.ID)
	if m.Visibility == "user_only" {
		return // shown, not sent
	}
	switch m.Role {
	case "user":
		d.user(at, e)
	case "assistant":
		d.reply(at, e)
	case "system":
		d.s.system(at, e.line, textOfParts(m.Content))
	default:
		d.in.skip(e.line, "a message of unknown role %q", m.Role)
	}
}

// follow notes where a message continues.
func (d *droid) follow(id string) {
	d.last = id
	if len(d.s.held) > 0 { // the entry is made when the next message is read
		d.s.settle()
	}
	d.refs[id] = d.s.b.last
}

// compact hides the messages up to the anchor, and shows the summary.
func (d *droid) compact(e *droidEvent) {
	until, ok := d.refs[e.Anchor.ID]
	if !ok || e.Summary == "" || d.s.b.Compactions >= maxCuts {
		d.in.skip(e.line, "a compaction without a summary, or of messages that are not in the file")
		return
	}
	show, err := d.s.r.user([]piece{words(e.Summary)})
	if err != nil {
		d.in.skip(e.line, "%v", err)
		return
	}
	hide := slices.DeleteFunc(d.s.b.soFar(), func(r ref) bool { return r > until })
	d.s.b.compact(parseTime(e.Timestamp), e.line, compaction{
		hide: hide, stage: "compact", reason: "Droid compacted the conversation", show: show, summary: &furl.Summary{Text: e.Summary, Model: d.s.b.Model},
	})
}

func (d *droid) user(at time.Time, e *droidEvent) {
	var pieces []piece
	for _, b := range claudeBlocks(e.Message.Content) {
		switch b.Type {
		case "text":
			pieces = append(pieces, words(b.Text))
		case "image":
			pieces = append(pieces, piece{kind: furl.KindImage, images: b.image()})
		case "tool_result":
			res := piece{id: d.s.r.answers(b.Answers), failed: b.IsError}
			var texts []string
			for _, c := range claudeBlocks(b.Content) {
				switch c.Type {
				case "text":
					texts = append(texts, c.Text)
				case "image":
					res.images = append(res.images, c.image()...)
				}
			}
			res.text = strings.Join(texts, "\n")
			d.s.result(at, e.line, res)
		}
	}
	if len(pieces) > 0 {
		d.s.user(at, e.line, pieces...)
	}
}

func (d *droid) reply(at time.Time, e *droidEvent) {
	var pieces []piece
	for _, b := range claudeBlocks(e.Message.Content) {
		switch b.Type {
		case "text":
			pieces = append(pieces, words(b.Text))
		case "thinking":
			pieces = append(pieces, piece{kind: furl.KindThinking, text: b.Thinking, signature: b.Signature})
		case "tool_use":
			pieces = append(pieces, piece{kind: furl.KindCall, id: b.ID, name: b.Name, args: b.Input})
		}
	}
	d.s.reply(at, furl.Exchange{Model: e.Message.ModelID, ResponseID: e.Message.ReplyID})
	d.s.assistant(at, e.line, pieces)
}

func (d *droid) finish() *Session {
	out := d.s.finish()
	out.Messages = d.messages
	if u := d.usage; u.Prompt() > 0 {
		d.in.note("usage is recorded as a sum only: %s fresh, %s read and %s written input tokens, %s output tokens",
			grouped(u.Input), grouped(u.CacheRead), grouped(u.CacheWrite), grouped(u.Output))
	}
	return out
}
