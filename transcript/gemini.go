package transcript

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readGemini reads a chat of Gemini CLI: one JSON object {sessionId, …,
// messages[]}. Later versions write JSON Lines of the same parts, where a
// message with a known id replaces the earlier one, {"$set": …} changes the
// header, and {"$rewindTo": id} removes that message and all after it.
//
// The messages are imported as Chat Completions, because the chat lacks what Gemini's
// own format needs, such as the signatures of thoughts. Thoughts are not sent back to
// the model.
func readGemini(in *input) ([]*Session, error) {
	g := &gemini{index: map[string]int{}, known: map[string]geminiMessage{}, twins: map[string]string{}, same: map[string]string{}, joined: map[string][]string{}}
	for n, rec := range in.objects() {
		o := objectOf(rec)
		switch {
		case o.has("$set"):
			g.head(o.object("$set"))
			g.all(in, n, o["$set"])
		case o.has("$rewindTo"):
			g.rewind(o.str("$rewindTo"))
		case o.has("messages"):
			g.head(o)
			g.all(in, n, rec)
		case o.has("type") && o.has("id"):
			g.put(in, n, rec)
		default:
			g.head(o)
		}
	}
	g.ended()
	return []*Session{g.session(in)}, nil
}

type gemini struct {
	id, title string
	msgs      []geminiMessage
	index     map[string]int           // message id → index in msgs
	known     map[string]geminiMessage // by id
	twins     map[string]string        // id by what a message is recognized by, see twin
	same      map[string]string        // id of a message that was written again → id of the first
	joined    map[string][]string      // the same for one that joins several, see opening
	dropped   map[string]bool          // ids that the last record, if it was a whole chat, lacks
}

type geminiMessage struct {
	line   int
	undone bool // it is no longer sent

	ID        string          `json:"id"`
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Tokens    geminiTokens    `json:"tokens"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Args      json.RawMessage `json:"args"`
		Result    json.RawMessage `json:"result"`
		Status    string          `json:"status"`
		Timestamp string          `json:"timestamp"`
	} `json:"toolCalls"`
}

type geminiTokens struct {
	Input    int `json:"input"`
	Output   int `json:"output"`
	Cached   int `json:"cached"`
	Thoughts int `json:"thoughts"`
}

// usage converts the counts: input includes the tokens read from the cache,
// output excludes the thoughts.
func (t geminiTokens) usage() furl.Usage {
	cached := min(t.Cached, t.Input)
	return furl.Usage{Input: t.Input - cached, CacheRead: cached, Output: t.Output + t.Thoughts, Reasoning: t.Thoughts}
}

func (g *gemini) head(o object) {
	if id := o.str("sessionId"); id != "" {
		g.id = id
	}
	if title := o.str("summary"); title != "" {
		g.title = title
	}
}

// all reads the messages of a whole chat. Those of before that it lacks are no longer sent.
func (g *gemini) all(in *input, line int, raw []byte) {
	if objectOf(raw).kind("messages") != '[' {
		return
	}
	was := g.msgs
	g.msgs = nil
	clear(g.index)
	for _, m := range in.elements(raw, "messages") {
		g.put(in, line, m)
	}
	was = slices.DeleteFunc(was, func(m geminiMessage) bool { return g.same[m.ID] != "" })
	g.dropped = g.undo(was)
}

// opening returns the ids of the messages that a chat begins with if m has their texts together:
// Gemini CLI joins them where it writes the chat again because it shortened results.
func (g *gemini) opening(m *geminiMessage) []string {
	if ids := g.joined[m.ID]; ids != nil {
		return ids
	}
	if _, known := g.known[m.ID]; known || m.Type != "user" || m.ID == "" {
		return nil
	}
	var ids []string
	text := ""
	for i := range g.msgs {
		was := &g.msgs[i]
		if was.Type != "user" || was.undone {
			break
		}
		ids, text = append(ids, was.ID), text+geminiWords(was.Content)
	}
	if len(ids) < 2 || text == "" || text != geminiWords(m.Content) {
		return nil
	}
	g.joined[m.ID] = ids
	return ids
}

// geminiWords is all text of a content.
func geminiWords(raw json.RawMessage) string {
	var b strings.Builder
	for _, p := range geminiList(raw) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// twin is by what a message is recognized if it is written again with a new id: the calls of a
// reply or its text, and the results of a message of the user. It is "" for other words.
func (m *geminiMessage) twin() string {
	var ids []string
	for _, c := range m.ToolCalls {
		ids = append(ids, c.ID)
	}
	parts := geminiList(m.Content)
	for i := range parts {
		switch p := &parts[i]; {
		case p.FunctionCall != nil && len(m.ToolCalls) == 0:
			ids = append(ids, p.FunctionCall.ID)
		case p.FunctionResponse != nil:
			ids = append(ids, p.FunctionResponse.ID)
		}
	}
	switch {
	case len(ids) > 0:
		return m.Type + " " + strings.Join(ids, " ")
	case m.Type == "gemini":
		return m.Type + ":" + geminiWords(m.Content)
	}
	return ""
}

// first gives a message that was written again the id of the first: when Gemini CLI shortens
// results, it writes all messages with new ids, and replies without tokens.
func (g *gemini) first(m *geminiMessage) {
	if id := g.same[m.ID]; id != "" {
		m.ID = id
		return
	}
	if _, known := g.known[m.ID]; known || m.ID == "" {
		return
	}
	key := m.twin()
	if key == "" {
		return
	}
	id := g.twins[key]
	if rewritten := m.Type == "user" || m.Tokens == (geminiTokens{}) && len(m.ToolCalls) == 0 && m.Model == ""; id != "" && rewritten {
		g.same[m.ID] = id
		m.ID = id
	}
}

// undo adds the messages of before that are not in the list, each after the message that it followed, as
// undone. It returns the ids of those that were sent until now.
func (g *gemini) undo(was []geminiMessage) map[string]bool {
	after := make(map[string][]geminiMessage)
	dropped := make(map[string]bool)
	last := ""
	for _, m := range was {
		if _, ok := g.index[m.ID]; ok {
			last = m.ID
			continue
		}
		if !m.undone {
			dropped[m.ID] = true
		}
		m.undone = true
		after[last] = append(after[last], m)
	}
	if len(after) == 0 {
		return nil
	}
	list := after[""]
	for _, m := range g.msgs {
		list = append(append(list, m), after[m.ID]...)
	}
	g.msgs = list
	g.number()
	return dropped
}

// number finds the messages that are sent again.
func (g *gemini) number() {
	clear(g.index)
	for i := range g.msgs {
		if !g.msgs[i].undone {
			g.index[g.msgs[i].ID] = i
		}
	}
}

func (g *gemini) put(in *input, line int, raw []byte) {
	m := geminiMessage{line: line}
	if err := lenient(raw, &m); err != nil {
		in.skip(line, "message %d: %v", len(g.msgs)+1, err)
		return
	}
	if ids := g.opening(&m); ids != nil {
		for _, id := range ids {
			g.place(g.known[id])
		}
		return
	}
	g.first(&m)
	if m.ID != "" {
		m.restore(g.known[m.ID])
		g.known[m.ID] = m
		if key := m.twin(); key != "" {
			g.twins[key] = m.ID
		}
	}
	g.place(m)
}

// place adds a message, or replaces the one with its id.
func (g *gemini) place(m geminiMessage) {
	g.dropped = nil
	if i, ok := g.index[m.ID]; ok && m.ID != "" {
		g.msgs[i] = m
		return
	}
	g.index[m.ID] = len(g.msgs)
	g.msgs = append(g.msgs, m)
}

// restore takes from the message that m replaces what m lacks. After a resume Gemini CLI writes all messages
// again, as they are sent: replies without tokens and model, and calls only among their parts.
func (m *geminiMessage) restore(was geminiMessage) {
	if was.ID == "" || was.Type != m.Type {
		return
	}
	if m.Type == "gemini" && m.Tokens == (geminiTokens{}) && len(m.ToolCalls) == 0 && m.Model == "" || m.twin() != "" && m.Type == "user" {
		line := m.line
		*m = was
		m.line = line
	}
	m.Timestamp = was.Timestamp
}

// rewind undoes a message and all after it.
func (g *gemini) rewind(id string) {
	i, ok := g.index[id]
	if !ok {
		return
	}
	for k := i; k < len(g.msgs); k++ {
		g.msgs[k].undone = true
	}
	g.number()
}

// ended restores what the last record dropped: a resume first writes the start of the chat, then all of it.
func (g *gemini) ended() {
	for i := range g.msgs {
		if g.dropped[g.msgs[i].ID] {
			g.msgs[i].undone = false
		}
	}
}

func (g *gemini) session(in *input) *Session {
	models := make([]string, len(g.msgs))
	for i := range g.msgs {
		models[i] = g.msgs[i].Model
	}
	s := newScribe(in, furl.FormatChat, commonModel(models))
	s.b.ID, s.b.Title = g.id, g.title
	w := &geminiWriter{scribe: s, open: make(map[string]bool)}
	for from := 0; from < len(g.msgs); {
		to := from + 1
		for to < len(g.msgs) && g.msgs[to].undone == g.msgs[from].undone {
			to++
		}
		if g.msgs[from].undone { // a branch
			s.aside(parseTime(g.msgs[from].Timestamp), func() { w.add(g.msgs[from:to]) })
			w.said = nil
		} else {
			w.add(g.msgs[from:to])
		}
		from = to
	}
	out := s.finish()
	out.Messages = len(g.msgs)
	return out
}

// geminiWriter writes messages of a chat.
type geminiWriter struct {
	*scribe
	said *geminiMessage  // the reply whose calls may be in the next message
	open map[string]bool // calls whose results are in messages of the user
}

func (w *geminiWriter) add(msgs []geminiMessage) {
	for i := range msgs {
		m := &msgs[i]
		at := parseTime(m.Timestamp)
		switch m.Type {
		case "user":
			w.said = nil
			if !w.results(at, m) {
				w.user(at, m.line, geminiParts(m.Content)...)
			}
		case "gemini":
			if w.said == nil || !m.continues() {
				w.scribe.reply(at, furl.Exchange{Model: m.Model, Usage: m.Tokens.usage()})
			}
			w.reply(at, m)
			if w.said = m; len(m.ToolCalls) > 0 {
				w.said = nil
			}
		case "info", "warning", "error": // shown, not sent
		default:
			w.b.in.skip(m.line, "unknown type %q of a message", m.Type)
		}
	}
}

// continues reports whether the message contains only calls of the reply
// before it. Gemini CLI starts a new message for them if it displayed
// something in between.
func (m *geminiMessage) continues() bool {
	return len(m.ToolCalls) > 0 && m.Tokens == geminiTokens{} && len(geminiParts(m.Content)) == 0
}

// results adds the results in a message of the user, and reports whether there are any. Those of calls that
// have one are repetitions, and so are the images beside them.
func (w *geminiWriter) results(at time.Time, m *geminiMessage) (has bool) {
	parts := geminiList(m.Content)
	for i := range parts {
		p := parts[i].FunctionResponse
		if p == nil {
			continue
		}
		has = true
		if !w.open[p.ID] {
			continue
		}
		delete(w.open, p.ID)
		res := geminiOutcome(append([]geminiPart{parts[i]}, p.Parts...))
		res.id = w.r.answers(p.ID)
		w.result(at, m.line, res)
	}
	return has
}

func (w *geminiWriter) reply(at time.Time, m *geminiMessage) {
	pieces := geminiParts(m.Content)
	if len(m.ToolCalls) > 0 { // with their results
		pieces = slices.DeleteFunc(pieces, func(p piece) bool { return p.kind == furl.KindCall })
	}
	for i := range pieces {
		if pieces[i].kind == furl.KindCall {
			w.open[pieces[i].id] = true
		}
	}
	for _, c := range m.ToolCalls {
		pieces = append(pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Name, args: c.Args})
	}
	w.assistant(at, m.line, pieces)
	calls := slices.DeleteFunc(pieces, func(p piece) bool { return p.kind != furl.KindCall })
	for i, c := range m.ToolCalls {
		if len(c.Result) == 0 || string(c.Result) == "null" {
			continue // never finished
		}
		res := geminiResult(c.Result)
		res.id, res.failed = calls[i].id, res.failed || c.Status == "error" || c.Status == "cancelled"
		w.result(parseTime(c.Timestamp), m.line, res)
	}
}

// geminiPart is a part of a content. A part may also be a plain string.
type geminiPart struct {
	Text       string `json:"text"`
	Thought    bool   `json:"thought"`
	InlineData *struct {
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"inlineData"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string          `json:"id"`
		Response json.RawMessage `json:"response"`
		Parts    []geminiPart    `json:"parts"`
	} `json:"functionResponse"`
}

// geminiList reads a content: a string, a part, or a list of these.
func geminiList(raw json.RawMessage) []geminiPart {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var parts []geminiPart
	for _, raw := range list {
		var p geminiPart
		if json.Unmarshal(raw, &p.Text) == nil || lenient(raw, &p) == nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func geminiParts(raw json.RawMessage) []piece { return geminiPieces(geminiList(raw)) }

// geminiPieces returns the texts, images and calls of parts.
func geminiPieces(parts []geminiPart) (pieces []piece) {
	for i := range parts {
		switch p := &parts[i]; {
		case p.FunctionCall != nil:
			pieces = append(pieces, piece{kind: furl.KindCall, id: p.FunctionCall.ID, name: p.FunctionCall.Name, args: p.FunctionCall.Args})
		case p.Text != "" && !p.Thought:
			pieces = append(pieces, words(p.Text))
		case p.InlineData != nil && strings.HasPrefix(p.InlineData.MimeType, "image/"):
			pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{{mime: p.InlineData.MimeType, data: p.InlineData.Data}}})
		}
	}
	return pieces
}

// geminiResult reads the result of a tool: a functionResponse and possibly
// other parts.
func geminiResult(raw json.RawMessage) piece { return geminiOutcome(geminiList(raw)) }

func geminiOutcome(parts []geminiPart) piece {
	res := piece{kind: furl.KindResult}
	var texts []string
	for _, p := range parts {
		switch {
		case p.FunctionResponse != nil:
			o := objectOf(p.FunctionResponse.Response)
			switch {
			case len(o) == 1 && o.kind("output") == '"':
				texts = append(texts, o.str("output"))
			case len(o) == 1 && o.kind("error") == '"':
				texts, res.failed = append(texts, o.str("error")), true
			default:
				texts = append(texts, string(p.FunctionResponse.Response))
			}
		case p.Text != "":
			texts = append(texts, p.Text)
		case p.InlineData != nil:
			res.images = append(res.images, picture{mime: p.InlineData.MimeType, data: p.InlineData.Data})
		}
	}
	res.text = strings.Join(texts, "\n")
	return res
}
