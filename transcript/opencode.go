package transcript

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readOpencode reads an opencode export: one JSON object {info, messages[]},
// each message {info, parts[]}. opencode uses Responses for OpenAI's models,
// Messages for Claude and Chat Completions for all others. A call and its
// result are one part; an assistant message is one step, or several steps
// that each start with a step-start part.
func readOpencode(in *input) ([]*Session, error) {
	raws := in.elements(in.data, "messages")
	msgs := make([]opencodeMessage, len(raws))
	models := make([]string, len(raws))
	for i, raw := range raws {
		if err := lenient(raw, &msgs[i]); err != nil {
			in.skip(0, "message %d: %v", i+1, err)
		}
		models[i] = msgs[i].Info.ModelID
	}
	model := commonModel(models)
	o := &opencode{scribe: newScribe(in, wireOf(model, furl.FormatResponses), model), before: map[string]ref{}}
	info := objectOf(in.data).object("info")
	o.b.ID, o.b.Parent, o.b.Title, o.b.Project = info.str("id"), info.str("parentID"), info.str("title"), info.str("directory")
	if strings.HasPrefix(o.b.Title, "New session - ") || strings.HasPrefix(o.b.Title, "Child session - ") {
		o.b.Title = "" // opencode's name until there is a title
	}
	for from := 0; from < len(msgs); {
		to := from + 1
		for to < len(msgs) && msgs[to].Removed == msgs[from].Removed {
			to++
		}
		add := func() { o.messages(from, msgs[from:to]) }
		if msgs[from].Removed { // the user has undone it
			o.aside(milliTime(msgs[from].Info.Time.Created), add)
		} else {
			add()
		}
		from = to
	}
	o.settle()
	o.prune(o.due)
	o.b.Messages = len(msgs)
	return []*Session{o.finish()}, nil
}

type opencode struct {
	*scribe
	pruned []opencodePrune // results cleared later
	due    time.Time       // when the newest of them was cleared
	before map[string]ref  // message id → position in the conversation before it
	asked  *opencodePart   // a requested compaction
}

// opencodePrune is one result that opencode cleared.
type opencodePrune struct {
	at time.Time
	id string // of the call, on the wire
}

type opencodeMessage struct {
	Info struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		ModelID string `json:"modelID"`
		Finish  string `json:"finish"`
		// Summary is true on the summary of a compaction. On messages of the
		// user it has another meaning.
		Summary json.RawMessage `json:"summary"`
		Error   *struct {
			Name string `json:"name"`
		} `json:"error"`
		Tokens opencodeTokens `json:"tokens"`
		Time   opencodeTime   `json:"time"`
	} `json:"info"`
	Parts   []opencodePart `json:"parts"`
	Removed bool           `json:"removed"` // by a revert, see opencodeStore
}

// opencodeTime contains Unix milliseconds.
type opencodeTime struct {
	Created   float64 `json:"created"`
	End       float64 `json:"end"`
	Compacted float64 `json:"compacted"`
}

type opencodeTokens struct {
	Total     int `json:"total"`
	Input     int `json:"input"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning"`
	Cache     struct {
		Read  int `json:"read"`
		Write int `json:"write"`
	} `json:"cache"`
}

// usage converts the counts: input excludes the cache. Whether output
// includes the reasoning depends on the version; the total shows it.
func (t opencodeTokens) usage() furl.Usage {
	u := furl.Usage{Input: t.Input, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write, Output: t.Output, Reasoning: t.Reasoning}
	if t.Reasoning > t.Output || t.Total > 0 && t.Total == u.Prompt()+t.Output+t.Reasoning {
		u.Output += t.Reasoning
	}
	return u
}

type opencodePart struct {
	Type      string                                `json:"type"`
	Text      string                                `json:"text"`
	Ignored   bool                                  `json:"ignored"`
	Metadata  map[string]map[string]json.RawMessage `json:"metadata"` // by provider
	Tool      string                                `json:"tool"`
	CallID    string                                `json:"callID"`
	State     opencodeState                         `json:"state"`
	Mime      string                                `json:"mime"`
	URL       string                                `json:"url"`
	Reason    string                                `json:"reason"`
	Tokens    opencodeTokens                        `json:"tokens"`
	TailStart string                                `json:"tail_start_id"`
}

type opencodeState struct {
	Status      string          `json:"status"`
	Input       json.RawMessage `json:"input"`
	Output      string          `json:"output"`
	Error       string          `json:"error"`
	Time        opencodeTime    `json:"time"`
	Attachments []opencodePart  `json:"attachments"`
	Metadata    struct {
		Exit *int `json:"exit"`
	} `json:"metadata"`
}

// Texts that opencode sends in place of content it withholds.
const (
	opencodePruned      = "[Old tool result content cleared]"
	opencodeInterrupted = "[Tool execution was interrupted]"
	opencodeCompacted   = "What did we do so far?"
	opencodeSubtask     = "The following tool was executed by the user"
)

// messages adds messages of which the first has the index from.
func (o *opencode) messages(from int, list []opencodeMessage) {
	for i := range list {
		o.message(from+i+1, &list[i])
	}
}

func (o *opencode) message(n int, m *opencodeMessage) {
	at := milliTime(m.Info.Time.Created)
	o.settle()
	o.prune(at)
	o.before[m.Info.ID] = o.b.last
	switch {
	case m.Info.Role == "user":
		o.addUser(at, m)
	case m.Info.Role != "assistant":
		o.b.in.skip(0, "message %d: unknown role %q", n, m.Info.Role)
	case string(m.Info.Summary) == "true" && o.asked != nil:
		o.compaction(at, m)
	default:
		o.steps(at, m)
	}
}

// addUser adds a message of the user.
func (o *opencode) addUser(at time.Time, m *opencodeMessage) {
	var pieces []piece
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Type {
		case "text":
			if !p.Ignored {
				pieces = append(pieces, words(p.Text))
			}
		case "file":
			if pic, ok := dataPicture(p.Mime, p.URL); ok {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
		case "compaction":
			o.asked = p // its text is shown once the summary is known
			return
		case "subtask":
			pieces = append(pieces, words(opencodeSubtask))
		}
	}
	o.user(at, 0, pieces...)
}

// steps adds an assistant message: a request and its reply for each step.
func (o *opencode) steps(at time.Time, m *opencodeMessage) {
	steps := opencodeSteps(m.Parts)
	for _, step := range steps {
		ex := furl.Exchange{Model: m.Info.ModelID, Stop: m.Info.Finish}
		if len(steps) == 1 {
			ex.Usage = m.Info.Tokens.usage()
		}
		for i := range step {
			if step[i].Type == "step-finish" {
				ex.Usage, ex.Stop = step[i].Tokens.usage(), step[i].Reason
			}
		}
		if m.Info.Error != nil && ex.Stop == "" {
			ex.Stop = m.Info.Error.Name
		}
		o.reply(at, ex)
		if m.Info.Error != nil && !m.isSentBack(step) {
			o.aside(at, func() { o.step(at, step) })
		} else {
			o.step(at, step)
		}
	}
}

// isSentBack reports whether opencode sends a failed reply back to the model:
// only a reply that the user interrupted and that has text or calls.
func (m *opencodeMessage) isSentBack(step []opencodePart) bool {
	return m.Info.Error.Name == "MessageAbortedError" && slices.ContainsFunc(step, func(p opencodePart) bool {
		return p.Type == "text" || p.Type == "tool"
	})
}

// opencodeSteps splits the parts of a message at its step-starts. Parts
// before the first step-start belong to the first step.
func opencodeSteps(parts []opencodePart) [][]opencodePart {
	var steps [][]opencodePart
	from, begun := 0, false
	for i := range parts {
		if parts[i].Type == "step-start" {
			if begun {
				steps = append(steps, parts[from:i])
				from = i
			}
			begun = true
		}
	}
	return append(steps, parts[from:])
}

func (o *opencode) step(at time.Time, parts []opencodePart) {
	var pieces []piece
	var tools []*opencodePart // the parts of the calls among pieces
	for i := range parts {
		switch p := &parts[i]; p.Type {
		case "text":
			pieces = append(pieces, words(p.Text))
		case "reasoning":
			pieces = append(pieces, p.thinking())
		case "tool":
			tools = append(tools, p)
			pieces = append(pieces, piece{kind: furl.KindCall, id: p.CallID, name: p.Tool, args: p.State.Input})
		}
	}
	o.assistant(at, 0, pieces)
	for i := range pieces {
		if pieces[i].kind == furl.KindCall {
			o.outcome(tools[0], pieces[i].id)
			tools = tools[1:]
		}
	}
}

// thinking takes the provider's signature from the part's metadata. Each
// provider names it differently.
func (p *opencodePart) thinking() piece {
	pc := piece{kind: furl.KindThinking, text: p.Text}
	for _, fields := range p.Metadata {
		take := func(key string, to *string) bool {
			var s string
			if json.Unmarshal(fields[key], &s) != nil || s == "" {
				return false
			}
			*to = s
			return true
		}
		take("itemId", &pc.itemID)
		take("reasoningEncryptedContent", &pc.signature)
		take("signature", &pc.signature)
		if take("redactedData", &pc.signature) {
			pc.redacted = true
		}
	}
	return pc
}

// outcome adds the result in a tool part.
func (o *opencode) outcome(p *opencodePart, id string) {
	st := &p.State
	res := piece{id: id, text: st.Output}
	switch st.Status {
	case "completed":
		res.failed = st.Metadata.Exit != nil && *st.Metadata.Exit != 0
		for i := range st.Attachments {
			if pic, ok := dataPicture(st.Attachments[i].Mime, st.Attachments[i].URL); ok {
				res.images = append(res.images, pic)
			}
		}
	case "error":
		res.text, res.failed = st.Error, true
	default: // pending or running when the session ended
		res.text, res.failed, res.made = opencodeInterrupted, true, true
	}
	o.result(milliTime(st.Time.End), 0, res)
	if at := milliTime(st.Time.Compacted); !at.IsZero() {
		o.pruned = append(o.pruned, opencodePrune{at, id})
		if at.After(o.due) {
			o.due = at
		}
	}
}

// prune records the results that opencode had cleared by the time at.
func (o *opencode) prune(at time.Time) {
	var due []hiding
	var newest time.Time
	o.pruned = slices.DeleteFunc(o.pruned, func(p opencodePrune) bool {
		if p.at.After(at) {
			return false
		}
		due = append(due, hiding{call: p.id, text: opencodePruned})
		if p.at.After(newest) {
			newest = p.at
		}
		return true
	})
	if len(due) > 0 {
		o.b.mask(newest, 0, masking{reason: "opencode cleared old tool results", hide: due})
	}
}

// compaction records a summary: the summary and the question before it
// replace everything before the tail.
func (o *opencode) compaction(at time.Time, m *opencodeMessage) {
	tail, hasTail := o.before[o.asked.TailStart]
	o.asked = nil
	var text strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Type == "text" {
			text.WriteString(m.Parts[i].Text)
		}
	}
	if m.Info.Error != nil || text.String() == "" {
		return // it failed and changed nothing
	}
	show, err := o.r.user([]piece{words(opencodeCompacted)})
	if err == nil {
		var summary []*furl.Message
		if summary, err = o.r.assistant([]piece{words(text.String())}); err == nil {
			show = append(show, summary...)
		}
	}
	if err != nil {
		o.b.in.skip(0, "compaction: %v", err)
		return
	}
	usage := m.Info.Tokens.usage()
	cut := compaction{
		stage: "compact", reason: "opencode compacted the conversation", show: show, before: usage.Prompt(),
		summary: &furl.Summary{Text: text.String(), Model: m.Info.ModelID, Usage: usage},
	}
	for _, r := range o.b.soFar() {
		if !hasTail || r <= tail {
			cut.hide = append(cut.hide, r)
		}
	}
	o.b.compact(at, 0, cut)
}
