package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readKimi reads the log of one agent of a Kimi Code session,
// SESSION/agents/AGENT/wire.jsonl: JSON Lines of events. The conversation is in
// context.append_message, context.append_loop_event, context.apply_compaction,
// context.undo and context.clear. agent.message.appended repeats messages at the
// end of a turn; only images are taken from it. Usage is in usage.record, once
// for each request; step.end, subagent.completed and agent.message.appended
// repeat it. The rules are those of Kimi Code 2.1.0, packages/agent-core-v2.
func readKimi(in *input) ([]*Session, error) {
	k := &kimi{in: in, images: make(map[string][]picture), tools: make(map[string][]json.RawMessage)}
	var events []kimiEvent
	for n, rec := range in.records() {
		if e, ok := k.decode(n, rec); ok {
			events = append(events, e)
		}
	}
	if in.refused != nil {
		return nil, nil
	}
	k.begin()
	for i := range events {
		k.event(&events[i])
	}
	return []*Session{k.finish()}, nil
}

func isKimi(p *probe) bool {
	return p.is('l', '{') && p.any(func(o object) bool {
		switch o.str("type") {
		case "metadata":
			return o.has("protocol_version", "created_at")
		case "context.append_message", "context.append_loop_event", "profile.bind", "usage.record":
			return o.has("agentId", "time")
		}
		return false
	})
}

type kimiEvent struct {
	line int

	Type    string          `json:"type"`
	AgentID string          `json:"agentId"`
	Time    float64         `json:"time"`
	Message json.RawMessage `json:"message"`
	Event   kimiLoopEvent   `json:"event"`

	// profile.bind, config.update
	SystemPrompt string `json:"systemPrompt"`
	Environment  struct {
		Cwd string `json:"cwd"`
	} `json:"environmentDisclosure"`

	// llm.request, llm.tools_snapshot, usage.record
	Kind      string            `json:"kind"`
	Provider  string            `json:"provider"`
	Model     string            `json:"model"`
	ToolsHash string            `json:"toolsHash"`
	Hash      string            `json:"hash"`
	Tools     []json.RawMessage `json:"tools"`
	Usage     kimiUsage         `json:"usage"`
	Scope     string            `json:"usageScope"`

	// context.undo, context.apply_compaction
	Count          int             `json:"count"`
	Summary        json.RawMessage `json:"summary"`
	ContextSummary string          `json:"contextSummary"`
	Kept           *int            `json:"keptUserMessageCount"`
	KeptHead       *int            `json:"keptHeadUserMessageCount"`
	TokensBefore   int             `json:"tokensBefore"`
	TokensAfter    int             `json:"tokensAfter"`
}

// kimiLoopEvent is a part of a step: step.begin, content.part, tool.call,
// tool.result or step.end.
type kimiLoopEvent struct {
	Type         string          `json:"type"`
	UUID         string          `json:"uuid"`
	StepUUID     string          `json:"stepUuid"`
	Part         kimiPart        `json:"part"`
	CallID       string          `json:"toolCallId"`
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args"`
	Result       kimiResult      `json:"result"`
	FinishReason string          `json:"finishReason"`
	RawFinish    string          `json:"rawFinishReason"`
	MessageID    string          `json:"messageId"`
	Usage        kimiUsage       `json:"usage"`
}

type kimiPart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Think     string `json:"think"`
	Encrypted string `json:"encrypted"`
	ImageURL  struct {
		URL string `json:"url"`
	} `json:"imageUrl"`
}

type kimiUsage struct {
	Input      int `json:"inputOther"`
	Output     int `json:"output"`
	CacheRead  int `json:"inputCacheRead"`
	CacheWrite int `json:"inputCacheCreation"`
}

func (u kimiUsage) usage() furl.Usage {
	return furl.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
}

type kimiMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Origin  *kimiOrigin     `json:"origin"`
	CallID  string          `json:"toolCallId"`
	Calls   []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
	IsError bool `json:"isError"`
}

// kimiOrigin says who made a message; nil for the user.
type kimiOrigin struct {
	Kind    string `json:"kind"`
	Trigger string `json:"trigger"`
	Owner   string `json:"ownerPromptId"` // of an injection
	InTurn  bool   `json:"inTurn"`        // typed while the model worked
}

// typed reports whether the user wrote the message. Compactions keep it.
func (o *kimiOrigin) typed() bool {
	return o == nil || o.Kind == "user" || (o.Kind == "skill_activation" || o.Kind == "plugin_command") && o.Trigger == "user-slash"
}

type kimi struct {
	in       *input
	s        *scribe
	state    object // state.json of the session
	agent    string
	project  string
	prompt   string
	tools    map[string][]json.RawMessage // by their hash
	used     []json.RawMessage            // the tools of the newest request
	images   map[string][]picture         // of prompts and results, by the ids of the prompt and the call
	models   []string
	provider []string

	instructions ref // 0 if they are in the preamble
	step         *kimiStep
	model        string // of the newest request
	typed        []ref  // messages of the user that the model sees
	anchors      []kimiAnchor
	owned        kimiAnchor // an injection right before the prompt that owns it
	summaries    kimiSide   // requests that are not steps, for the next compaction
	lost         int        // images that are not in the recording
	blind        int        // compactions whose kept messages are unknown
}

// kimiAnchor is a prompt to which undo can return.
type kimiAnchor struct {
	id     string
	before ref
}

// kimiSide sums up requests outside the conversation.
type kimiSide struct {
	requests int
	model    string
	usage    furl.Usage
}

// decode returns an event of the conversation, and takes from the others what
// holds for the whole session.
func (k *kimi) decode(line int, rec []byte) (kimiEvent, bool) {
	switch objectOf(rec).str("type") {
	case "context.append_message", "context.append_loop_event", "context.apply_compaction", "context.undo", "context.clear",
		"usage.record", "llm.request", "llm.tools_snapshot", "profile.bind", "config.update":
	case "agent.message.appended":
		k.copied(rec)
		return kimiEvent{}, false
	default:
		return kimiEvent{}, false
	}
	e := kimiEvent{line: line}
	if err := lenient(rec, &e); err != nil {
		k.in.skip(line, "%v", err)
		return e, false
	}
	if k.agent == "" {
		k.agent = e.AgentID
	}
	switch e.Type {
	case "profile.bind", "config.update":
		if e.Environment.Cwd != "" {
			k.project = e.Environment.Cwd
		}
		if e.SystemPrompt != "" {
			k.prompt = e.SystemPrompt
		}
		return e, false
	case "llm.tools_snapshot":
		if k.in.useMemory(int64(len(rec))) {
			k.tools[e.Hash], k.used = e.Tools, e.Tools
		}
		return e, false
	case "llm.request":
		if e.Kind == "loop" || e.Kind == "" {
			k.models, k.provider = append(k.models, e.Model), append(k.provider, e.Provider)
			if tools, ok := k.tools[e.ToolsHash]; ok {
				k.used = tools
			}
		}
	}
	return e, k.in.useMemory(int64(len(rec)))
}

// copied takes the images of a repeated message: the message itself may refer
// to files that are missing.
func (k *kimi) copied(rec []byte) {
	if !bytes.Contains(rec, []byte(`"image_url"`)) {
		return
	}
	var e struct {
		Message struct {
			Message kimiMessage `json:"message"`
			Meta    struct {
				PromptID string `json:"promptId"`
			} `json:"meta"`
		} `json:"message"`
	}
	if lenient(rec, &e) != nil {
		return
	}
	id := e.Message.Message.CallID + e.Message.Meta.PromptID
	for _, p := range kimiParts(e.Message.Message.Content) {
		if pic, ok := dataPicture("image/png", p.ImageURL.URL); ok && k.in.useMemory(int64(len(pic.data))) {
			k.images[id] = append(k.images[id], pic)
		}
	}
}

// begin prepares the session and its instructions.
func (k *kimi) begin() {
	wire := furl.FormatChat
	switch commonModel(k.provider) {
	case "anthropic":
		wire = furl.FormatAnthropic
	case "openai_responses":
		wire = furl.FormatResponses
	}
	k.s = newScribe(k.in, wire, commonModel(k.models))
	k.identify()
	k.s.system(time.Time{}, 0, k.prompt)
	k.instructions, k.s.b.Messages = k.s.b.last, 0 // it is in no record of its own
	for _, t := range k.used {
		k.s.b.tool(t)
	}
}

// identify names the session after its folder, and a sub-agent after the
// session and its own folder.
func (k *kimi) identify() {
	b := k.s.b
	b.Project = k.project
	session, agent, ok := kimiFolders(k.in.dir)
	if !ok {
		return
	}
	b.ID = session
	k.state = objectOf(k.in.beside("../../state.json"))
	if b.Project == "" {
		b.Project = k.state.str("cwd")
	}
	if agent == "main" {
		b.Title, b.ForkOf = headline(k.state.str("title")), k.state.str("forkedFrom")
		return
	}
	b.ID, b.Parent = session+"/"+agent, session
	if p := k.state.object("agents").object(agent).str("parentAgentId"); p != "" && p != "main" {
		b.Parent = session + "/" + p
	}
}

func (k *kimi) event(e *kimiEvent) {
	at := milliTime(e.Time)
	switch e.Type {
	case "context.append_message":
		if k.step != nil {
			k.step.after = append(k.step.after, e)
			return
		}
		k.message(e)
	case "context.append_loop_event":
		k.loop(at, e)
	case "llm.request":
		k.model = e.Model
		if k.step != nil {
			k.step.model = e.Model
		}
	case "usage.record":
		if k.step != nil && e.Scope != "session" {
			k.step.usages = append(k.step.usages, e.Usage)
			return
		}
		k.summaries.add(k.model, e.Usage.usage())
	case "context.apply_compaction":
		k.settle(true)
		k.compact(at, e)
	case "context.undo":
		k.settle(true)
		k.undo(at, e.Count)
	case "context.clear":
		k.settle(true)
		k.s.settle()
		k.s.b.rewind(at, k.instructions)
		k.typed, k.anchors = nil, nil
	}
}

func (s *kimiSide) add(model string, u furl.Usage) {
	s.requests++
	s.model = model
	s.usage.Input += u.Input
	s.usage.CacheRead += u.CacheRead
	s.usage.CacheWrite += u.CacheWrite
	s.usage.Output += u.Output
}

// message adds a message that is not part of a step.
func (k *kimi) message(e *kimiEvent) {
	at := milliTime(e.Time)
	var m kimiMessage
	if err := lenient(e.Message, &m); err != nil {
		k.in.skip(e.line, "%v", err)
		return
	}
	pieces := k.pieces(m.Content, m.ID)
	switch m.Role {
	case "user":
		k.user(at, e.line, &m, pieces)
	case "system":
		k.s.system(at, e.line, textOfParts(m.Content))
	case "assistant": // of sessions that Kimi Code took over from an older program
		for _, c := range m.Calls {
			pieces = append(pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Name, args: c.Arguments})
		}
		k.s.reply(at, furl.Exchange{})
		k.s.assistant(at, e.line, pieces)
	case "tool":
		k.s.result(at, e.line, k.result("", m.CallID, kimiResult{Output: m.Content, IsError: m.IsError}))
	default:
		k.in.skip(e.line, "a message of unknown role %q", m.Role)
	}
}

func (k *kimi) user(at time.Time, line int, m *kimiMessage, pieces []piece) {
	k.s.settle()
	before := k.s.b.last
	r := k.s.user(at, line, pieces...)
	owned := k.owned
	k.owned = kimiAnchor{}
	switch {
	case r == 0:
	case m.Origin.typed():
		k.typed = append(k.typed, r)
		if m.Origin != nil && m.Origin.InTurn {
			return
		}
		if owned.id != "" && owned.id == m.ID {
			before = owned.before
		}
		k.anchors = append(k.anchors, kimiAnchor{m.ID, before})
	case m.Origin.Owner != "":
		if owned.id != m.Origin.Owner {
			owned = kimiAnchor{m.Origin.Owner, before}
		}
		k.owned = owned
	}
}

// undo returns to before the prompt that is the given number of prompts ago.
func (k *kimi) undo(at time.Time, prompts int) {
	if prompts <= 0 || len(k.anchors) == 0 {
		return
	}
	n := max(0, len(k.anchors)-prompts)
	to := k.anchors[n].before
	k.anchors = k.anchors[:n]
	k.typed = slices.DeleteFunc(k.typed, func(r ref) bool { return r > to })
	k.s.settle()
	k.s.b.rewind(at, to)
}

const (
	kimiContinue    = "<system-reminder>\nContext compaction is complete — continue the work that was in progress when it began.\n</system-reminder>"
	kimiInterrupted = "Tool execution was interrupted before its result was recorded. Do not assume the tool completed successfully."
)

// compact hides everything except the user's messages, or the oldest and the
// newest of them, and shows the summary.
func (k *kimi) compact(at time.Time, e *kimiEvent) {
	k.s.settle()
	var short string
	if json.Unmarshal(e.Summary, &short) != nil {
		short = textOfParts(objectOf(e.Summary)["content"])
	}
	text := e.ContextSummary
	if text == "" {
		text = short
	}
	if text == "" {
		k.in.skip(e.line, "a compaction without a summary")
		return
	}
	cut := compaction{
		all: true, stage: "compact", reason: "Kimi Code compacted the conversation", before: e.TokensBefore, after: e.TokensAfter,
		summary: &furl.Summary{Text: short, Model: k.summaries.model, Usage: k.summaries.usage},
	}
	shown := []string{text}
	if e.Kept != nil {
		shown = append(shown, kimiContinue)
		k.keep(*e.Kept, e.KeptHead)
	} else {
		k.blind++
		k.typed = nil
	}
	for _, text := range shown {
		msgs, err := k.s.r.user([]piece{words(text)})
		if err != nil {
			k.in.skip(e.line, "%v", err)
			return
		}
		cut.show = append(cut.show, msgs...)
	}
	cut.keep = slices.Clone(k.typed)
	if k.instructions != 0 {
		cut.keep = append(cut.keep, k.instructions)
	}
	k.s.b.compact(at, e.line, cut)
	k.anchors, k.summaries = nil, kimiSide{}
}

// keep forgets the user's messages that a compaction does not keep: it keeps
// the newest, or with head the given number of oldest and the newest.
func (k *kimi) keep(kept int, head *int) {
	kept = min(max(kept, 0), len(k.typed))
	oldest := 0
	if head != nil {
		oldest = min(max(*head, 0), kept)
	}
	newest := k.typed[len(k.typed)-(kept-oldest):]
	k.typed = append(slices.Clone(k.typed[:oldest]), newest...)
}

func (k *kimi) finish() *Session {
	k.settle(false)
	if k.lost > 0 {
		k.in.note("%s not in the recording", plural(k.lost, "image"))
	}
	if k.blind > 0 {
		k.in.note("%s of an older version: the messages that it kept are hidden too", plural(k.blind, "compaction"))
	}
	if n := k.summaries; n.requests > 0 {
		k.in.note("skipped %s outside the conversation: %s input and %s output tokens", plural(n.requests, "request"), grouped(n.usage.Prompt()), grouped(n.usage.Output))
	}
	return k.s.finish()
}

func kimiParts(raw json.RawMessage) (parts []kimiPart) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []kimiPart{{Type: "text", Text: text}}
	}
	for _, raw := range listOf(raw) {
		var p kimiPart
		if lenient(raw, &p) == nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// pieces reads a content: a string or a list of parts. id finds copies of its
// images.
func (k *kimi) pieces(raw json.RawMessage, id string) (pieces []piece) {
	images := 0
	for _, p := range kimiParts(raw) {
		switch p.Type {
		case "text":
			pieces = append(pieces, words(p.Text))
		case "think":
			pieces = append(pieces, piece{kind: furl.KindThinking, text: p.Think, signature: p.Encrypted})
		case "image_url":
			if pic, ok := k.image(p.ImageURL.URL, id, images); ok {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
			images++
		}
	}
	return pieces
}

// image reads an image: a data URL, or blobref:MIME;HASH for the file
// blobs/HASH beside the log. The n-th copy under the id replaces a missing
// file.
func (k *kimi) image(url, id string, n int) (picture, bool) {
	if pic, ok := dataPicture("image/png", url); ok {
		return pic, true
	}
	if ref, ok := strings.CutPrefix(url, "blobref:"); ok {
		mime, hash, _ := strings.Cut(ref, ";")
		if data := k.blob(hash); data != nil && strings.HasPrefix(mime, "image/") {
			return picture{mime: mime, data: base64.StdEncoding.EncodeToString(data)}, true
		}
	}
	if copies := k.images[id]; n < len(copies) {
		return copies[n], true
	}
	k.lost++
	return picture{}, false
}

// blob reads a file that is named by its digest.
func (k *kimi) blob(hash string) []byte {
	if _, err := hex.DecodeString(hash); err != nil || hash == "" {
		return nil // it may be a path
	}
	return k.in.beside("blobs/" + hash)
}
