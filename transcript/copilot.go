package transcript

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readCopilot reads an event log of GitHub Copilot CLI: JSON Lines of {type,
// data, id, timestamp, parentId}. An assistant.message is one reply; the
// results of its calls arrive as tool.execution_complete. Copilot uses
// Messages for Claude, Responses for OpenAI's models and Chat Completions for
// all others; newer logs name the endpoint. They have the usage of each request in a session.usage_record (seen in
// 1.0.102), older ones output tokens only, and sums at the end.
func readCopilot(in *input) ([]*Session, error) {
	var events []copilotEvent
	var models []string
	for n, rec := range in.records() {
		e := copilotEvent{line: n}
		if err := lenient(rec, &e); err != nil {
			in.skip(n, "%v", err)
			continue
		}
		if e.Type == "assistant.message" {
			models = append(models, e.Data.Model)
		}
		events = append(events, e)
	}
	c := &copilot{in: in, model: commonModel(models), agents: map[string]*copilotTalk{}, used: map[string]*copilotUsage{}, assets: map[string]picture{}}
	c.look(events)
	c.main = c.current()
	for i := range events {
		c.event(&events[i])
	}
	c.sum(events)
	return c.finish(), nil
}

// look takes what other events refer to, before or after them.
func (c *copilot) look(events []copilotEvent) {
	var endpoints []string
	for i := range events {
		d := &events[i].Data
		switch events[i].Type {
		case "session.usage_record":
			c.used[d.Usage.APICallID] = &d.Usage
			endpoints = append(endpoints, d.Usage.Endpoint)
		case "session.binary_asset":
			c.assets[d.AssetID] = picture{mime: d.MimeType, data: d.Binary}
		}
	}
	c.endpoint = commonModel(endpoints)
}

// sum says what the requests used, if the log has only the sums.
func (c *copilot) sum(events []copilotEvent) {
	if len(c.used) > 0 {
		return
	}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type != "session.shutdown" {
			continue
		}
		var sum furl.Usage
		requests := 0
		for _, m := range events[i].Data.ModelMetrics {
			sum, requests = sum.Add(m.Usage.usage()), requests+m.Requests.Count
		}
		if requests > 0 {
			c.in.note("the usage of single requests was not recorded; %s used %d tokens of input, of which %d were read from the cache and %d written to it, and %d of output",
				plural(requests, "request"), sum.Prompt(), sum.CacheRead, sum.CacheWrite, sum.Output)
		}
		return
	}
}

// copilotUsage is what a request used.
type copilotUsage struct {
	Input      int    `json:"inputTokens"`
	Output     int    `json:"outputTokens"`
	CacheRead  int    `json:"cacheReadTokens"`
	CacheWrite int    `json:"cacheWriteTokens"`
	Reasoning  int    `json:"reasoningTokens"`
	APICallID  string `json:"apiCallId"`
	Endpoint   string `json:"apiEndpoint"`
}

// usage converts the counts: the input includes the cache.
func (u *copilotUsage) usage() furl.Usage {
	out := furl.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning}
	if cached := u.CacheRead + u.CacheWrite; cached <= u.Input {
		out.Input -= cached
	}
	return out
}

type copilotEvent struct {
	line int

	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"`
	AgentID   string      `json:"agentId"` // of a sub-agent
	Data      copilotData `json:"data"`
}

// copilotData holds the fields of all events that the importer uses.
type copilotData struct {
	SessionID string `json:"sessionId"`
	Context   struct {
		Cwd string `json:"cwd"`
	} `json:"context"` // session.start
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Sent    string          `json:"transformedContent"` // of a user.message
	Calls   []struct {
		ID        string          `json:"toolCallId"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolRequests"`
	OutputTokens int    `json:"outputTokens"`
	APICallID    string `json:"apiCallId"`
	Reasoning    string `json:"reasoningText"`
	Signature    string `json:"reasoningOpaque"`
	Encrypted    string `json:"encryptedContent"`

	// ParentCall is the call that started the sub-agent.
	ParentCall string `json:"parentToolCallId"`

	CallID  string `json:"toolCallId"` // tool.execution_complete
	Success *bool  `json:"success"`
	Result  struct {
		Content string `json:"content"`
		Binary  []struct {
			AssetID  string `json:"assetId"`
			MimeType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"binaryResultsForLlm"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`

	Summary      string `json:"summaryContent"` // session.compaction_complete
	TokensBefore int    `json:"preCompactionTokens"`

	Used  copilotUsage `json:"compactionTokensUsed"`
	Usage copilotUsage `json:"usage"` // session.usage_record

	AssetID  string `json:"assetId"` // session.binary_asset
	MimeType string `json:"mimeType"`
	Binary   string `json:"data"`

	ModelMetrics map[string]struct { // session.shutdown
		Requests struct {
			Count int `json:"count"`
		} `json:"requests"`
		Usage copilotUsage `json:"usage"`
	} `json:"modelMetrics"`
}

type copilot struct {
	in     *input
	model  string
	main   *copilotTalk
	agents map[string]*copilotTalk // by their ids, in older logs by the call that started them
	order  []string

	endpoint string                   // of most requests, if the log names them
	used     map[string]*copilotUsage // by the id of the API call
	assets   map[string]picture
}

// copilotTalk is one conversation: the main one or a sub-agent's.
type copilotTalk struct {
	*scribe
	c        *copilot
	told     string // the newest instructions
	messages int
	waiting  []string        // calls without a result, by id on the wire
	notices  []copilotNotice // received while calls were open
	apiCall  string          // of the newest reply
}

type copilotNotice struct {
	at   time.Time
	line int
	text string
}

func (c *copilot) current() *copilotTalk {
	wire := wireOf(c.model, furl.FormatResponses)
	switch {
	case strings.HasSuffix(c.endpoint, "/messages"):
		wire = furl.FormatAnthropic
	case strings.HasSuffix(c.endpoint, "/chat/completions"):
		wire = furl.FormatChat
	}
	return &copilotTalk{scribe: newScribe(c.in, wire, c.model), c: c}
}

// talkOf returns the conversation that an event belongs to.
func (c *copilot) talkOf(e *copilotEvent) *copilotTalk {
	id := cmp.Or(e.AgentID, e.Data.ParentCall)
	if id == "" {
		return c.main
	}
	t := c.agents[id]
	if t == nil {
		t = c.current()
		t.b.ID = id
		c.agents[id], c.order = t, append(c.order, id)
	}
	return t
}

func (c *copilot) event(e *copilotEvent) {
	at, d := parseTime(e.Timestamp), &e.Data
	t := c.talkOf(e)
	switch e.Type {
	case "session.start", "session.resume":
		if t.b.ID == "" {
			t.b.ID, t.b.Project = d.SessionID, d.Context.Cwd
		}
	case "system.message":
		t.messages++
		if text := d.text(); text != t.told { // repeated after a resume
			t.told = text
			t.system(at, e.line, text)
		}
	case "user.message":
		t.messages++
		text := d.Sent
		if text == "" {
			text = d.text()
		}
		t.addUser(at, e.line, text)
	case "system.notification":
		t.addUser(at, e.line, d.text())
	case "assistant.message":
		t.messages++
		t.addReply(at, e)
	case "tool.execution_complete":
		t.addResult(at, e)
	case "session.compaction_complete":
		if d.Success == nil || *d.Success {
			t.compaction(at, e)
		}
	}
}

// text returns the content if it is a string, otherwise "".
func (d *copilotData) text() string {
	var text string
	_ = json.Unmarshal(d.Content, &text)
	return text
}

// addUser adds text of the user, or a notice that is sent as such. It waits
// until no call is open.
func (t *copilotTalk) addUser(at time.Time, line int, text string) {
	if len(t.waiting) > 0 {
		t.notices = append(t.notices, copilotNotice{at, line, text})
		return
	}
	t.user(at, line, words(text))
}

func (t *copilotTalk) release() {
	for _, n := range t.notices {
		t.user(n.at, n.line, words(n.text))
	}
	t.notices = nil
}

func (t *copilotTalk) addReply(at time.Time, e *copilotEvent) {
	d := &e.Data
	t.waiting = nil // calls still open are left to the builder
	t.settle()
	t.release()
	if d.APICallID == "" || d.APICallID != t.apiCall {
		usage := furl.Usage{Output: d.OutputTokens}
		if u := t.c.used[d.APICallID]; u != nil && d.APICallID != "" {
			usage = u.usage()
		}
		t.reply(at, furl.Exchange{Model: d.Model, ResponseID: d.APICallID, Usage: usage})
	}
	t.apiCall = d.APICallID
	var pieces []piece
	if d.Reasoning != "" || d.Signature != "" || d.Encrypted != "" {
		sign := d.Signature
		if t.r.wire == furl.FormatResponses && d.Encrypted != "" {
			sign = d.Encrypted
		}
		pieces = append(pieces, piece{kind: furl.KindThinking, text: d.Reasoning, signature: sign})
	}
	if text := d.text(); text != "" {
		pieces = append(pieces, words(text))
	}
	for _, call := range d.Calls {
		pieces = append(pieces, piece{kind: furl.KindCall, id: call.ID, name: call.Name, args: call.Arguments})
	}
	t.assistant(at, e.line, pieces)
	for i := range pieces {
		if pieces[i].kind == furl.KindCall {
			t.waiting = append(t.waiting, pieces[i].id)
		}
	}
}

func (t *copilotTalk) addResult(at time.Time, e *copilotEvent) {
	d := &e.Data
	res := piece{id: t.r.answers(d.CallID), text: d.Result.Content}
	if d.Success != nil && !*d.Success {
		res.failed = true
		if res.text == "" {
			res.text = d.Error.Message
		}
	}
	for _, b := range d.Result.Binary {
		pic := picture{mime: b.MimeType, data: b.Data}
		if b.Data == "" {
			pic = t.c.assets[b.AssetID]
		}
		if strings.HasPrefix(pic.mime, "image/") && pic.data != "" {
			res.images = append(res.images, pic)
		}
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(id string) bool { return id == res.id })
	t.result(at, e.line, res)
	if len(t.waiting) == 0 {
		t.settle()
		t.release()
	}
}

// compaction hides everything before it and shows the summary.
func (t *copilotTalk) compaction(at time.Time, e *copilotEvent) {
	if e.Data.Summary == "" || t.b.Compactions >= maxCuts {
		return
	}
	t.settle()
	show, err := t.r.user([]piece{words(e.Data.Summary)})
	if err != nil {
		t.b.in.skip(e.line, "%v", err)
		return
	}
	cut := compaction{
		stage: "compact", reason: "Copilot compacted the conversation", show: show, before: e.Data.TokensBefore,
		summary: &furl.Summary{Text: e.Data.Summary, Model: t.b.Model, Usage: e.Data.Used.usage()},
	}
	for _, r := range t.b.soFar() {
		if m := t.b.entries[r-1].msg; m.Role != furl.RoleSystem && m.Role != furl.RoleDeveloper {
			cut.hide = append(cut.hide, r)
		}
	}
	t.b.compact(at, e.line, cut)
}

func (c *copilot) finish() []*Session {
	talks := []*copilotTalk{c.main}
	for _, call := range c.order {
		talks = append(talks, c.agents[call])
	}
	var sessions []*Session
	for i, t := range talks {
		t.settle()
		t.release()
		s := t.finish()
		s.Messages = t.messages
		if i > 0 {
			s.Parent = sessions[0].ID
		}
		sessions = append(sessions, s)
	}
	return sessions
}

// isBesideCopilot reports whether a file or folder is in a session of Copilot CLI and is not its log.
func isBesideCopilot(path string) bool {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	return filepath.Base(filepath.Dir(dir)) == "session-state" && name != "events.jsonl" && isFile(filepath.Join(dir, "events.jsonl"))
}
