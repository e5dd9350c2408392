package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readPi reads a session of pi, or of OpenClaw, which is based on pi: JSON
// Lines of entries. Since version 2 they form a tree by parentId.
//
// pi does not send replies that the user interrupted or that failed. Version
// 1 omitted only the calls without a result of such a reply; the usage of
// later replies shows this. Later versions omit the whole reply, and answer
// calls without a result with "No result provided" (packages/ai of
// badlogic/pi-mono). Omitted replies are recorded on their own branch.
func readPi(in *input) ([]*Session, error) {
	var entries []piEntry
	var models, apis []string
	for n, rec := range in.records() {
		e := piEntry{line: n}
		if err := lenient(rec, &e); err != nil {
			in.skip(n, "%v", err)
			continue
		}
		if e.Type == "message" && e.Message.Role == "assistant" && !e.Message.failed() && !e.Message.injected() {
			models, apis = append(models, e.Message.Model), append(apis, e.Message.API)
		}
		entries = append(entries, e)
	}
	model, api := commonModel(models), commonModel(apis)
	p := &pi{scribe: newScribe(in, piWire(api, model), model), at: map[string]ref{}, answered: map[string]bool{}, before: make([]ref, len(entries)), index: map[string]int{},
		results: map[string]piece{}, shortened: map[string]string{}}
	for i := range entries {
		if id := entries[i].ID; id != "" {
			p.index[id] = i
		}
		if m := &entries[i].Message; m.Role == "toolResult" {
			id, _, _ := strings.Cut(m.ToolCallID, "|")
			p.answered[id] = true
		}
	}
	p.overlapping(entries)
	for i := range entries {
		p.entry(i, entries)
		for _, n := range p.sent[i] { // requests that were sent here
			p.settleStep()
			p.request(parseTime(entries[n].Timestamp), &entries[n].Message)
		}
	}
	p.settleStep()
	s := p.finish()
	s.Messages = p.messages
	return []*Session{s}, nil
}

// piWire returns the wire format of an API of pi. Google's and other
// unsupported formats are imported as Chat Completions.
func piWire(api, model string) furl.Format {
	switch {
	case strings.HasPrefix(api, "anthropic"):
		return furl.FormatAnthropic
	case strings.HasSuffix(api, "responses"):
		return furl.FormatResponses
	case api == "openai-completions":
		return furl.FormatChat
	}
	return wireOf(model, furl.FormatChat)
}

type pi struct {
	*scribe
	version  int
	messages int
	at       map[string]ref  // entry id → position in the conversation after it
	last     string          // id of the newest entry
	holding  []string        // ids of the entries held back
	delayed  []*piEntry      // texts that wait for the results before them
	before   []ref           // per entry: position in the conversation before it
	waiting  []string        // calls of the newest reply without a result, by id on the wire
	answered map[string]bool // recorded ids of calls that have a result
	sent     map[int][]int   // entry → replies whose requests were sent directly after it
	early    map[int]bool    // those replies
	index    map[string]int  // entry id → its index

	results   map[string]piece  // of OpenClaw, by openclawKey
	shortened map[string]string // their texts in place of those of calls, by id on the wire
}

type piEntry struct {
	line int

	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`

	Version int       `json:"version"`       // of the header
	Parent  string    `json:"parentSession"` // of the header: a file
	Cwd     string    `json:"cwd"`
	Name    string    `json:"name"` // session_info
	Message piMessage `json:"message"`

	Summary       string          `json:"summary"` // compaction, branch_summary
	FirstKept     string          `json:"firstKeptEntryId"`
	FirstKeptAt   *int            `json:"firstKeptEntryIndex"` // version 1
	TokensBefore  int             `json:"tokensBefore"`
	CustomContent json.RawMessage `json:"content"`     // custom_message
	Usage         piUsage         `json:"usage"`       // compaction, usage
	Model         string          `json:"model"`       // usage
	Kind          string          `json:"kind"`        // usage
	Target        string          `json:"targetId"`    // context_edit, leaf
	Replacement   json.RawMessage `json:"replacement"` // context_edit

	CustomType string          `json:"customType"` // custom, of OpenClaw
	Data       json.RawMessage `json:"data"`       // custom, of OpenClaw
	AppendMode string          `json:"appendMode"` // "side": the conversation continues from the entry before it
}

// parentOf returns the id of the session in a file: what the file says if it is in the same folder,
// else what its name, TIME_ID.jsonl, says.
func (p *pi) parentOf(path string) string {
	name := path[strings.LastIndexAny(path, `/\\`)+1:]
	if name == "" {
		return ""
	}
	for _, line := range splitLines(p.b.in.startOf(name)) {
		if head := objectOf(line); head.str("type") == "session" && head.str("id") != "" {
			return head.str("id")
		}
		break
	}
	_, id, _ := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "_")
	return id
}

func (p *pi) entry(i int, entries []piEntry) {
	e := &entries[i]
	at := parseTime(e.Timestamp)
	if e.Type == "session" {
		if p.b.ID == "" {
			p.b.ID, p.b.Project, p.version = e.ID, e.Cwd, max(1, e.Version)
			p.b.ForkOf = p.parentOf(e.Parent)
		}
		return
	}
	if _, again := p.at[e.ID]; again {
		p.b.in.skip(e.line, "second entry with the id %q", e.ID)
		return
	}
	m := &e.Message
	result := e.Type == "message" && m.Role == "toolResult"
	aside := e.Type == "message" && m.injected() && len(p.waiting) > 0
	unsent := e.Type == "message" && m.Excluded && (m.Role == "custom" || m.Role == "user") // a note for people, also between a call and its result
	if !result && !aside && !unsent {
		p.settleStep()
	}
	back, last := p.b.last, p.last
	p.follow(at, e)
	p.before[i] = p.b.last
	switch {
	case unsent:
		if len(p.waiting) == 0 && len(p.held) == 0 {
			p.aside(at, func() { p.user(at, e.line, piPieces(m.Content)...) })
		}
	case aside: // it is added after the results
		p.messages++
		p.delayed = append(p.delayed, e)
	case result:
		p.message(at, e, i)
	case e.Type == "message":
		p.answerWaiting(at, e.line)
		p.message(at, e, i)
	}
	switch e.Type {
	case "compaction":
		p.compaction(at, e, i)
	case "branch_summary":
		if e.Summary != "" {
			p.user(at, e.line, words(fmt.Sprintf(piBranchSummary, e.Summary)))
		}
	case "custom_message":
		p.user(at, e.line, piPieces(e.CustomContent)...)
	case "usage": // a request without a reply, such as one that keeps the cache
		p.aside(at, func() { p.reply(at, furl.Exchange{Model: e.Model, Stop: e.Kind, Usage: e.Usage.usage()}) })
	case "context_edit":
		p.edit(at, e, entries)
	case "session_info":
		p.b.Title = e.Name
	case "reset":
		p.reset(at, e, i)
	case "custom":
		if e.CustomType == openclawShorter {
			p.shorten(at, e)
		}
	}
	if e.ID != "" {
		p.at[e.ID], p.last = p.b.last, e.ID
		if result || aside || unsent {
			p.holding = append(p.holding, e.ID)
		}
	}
	if e.AppendMode == "side" && e.Type != "leaf" {
		p.settleStep()
		p.b.rewind(at, back)
		p.last = last
	}
}

// settleStep adds the results held back. The position after each of their
// entries is then after all of them.
func (p *pi) settleStep() {
	p.settle()
	if len(p.waiting) == 0 {
		for _, e := range p.delayed {
			p.assistant(parseTime(e.Timestamp), e.line, piPieces(e.Message.Content))
		}
		p.delayed = nil
	}
	for _, id := range p.holding {
		p.at[id] = p.b.last
	}
	p.holding = nil
}

// answerWaiting answers calls for which the file has no result.
func (p *pi) answerWaiting(at time.Time, line int) {
	for _, id := range p.waiting {
		p.result(at, line, piece{id: id, text: piNoResult, failed: true, made: true})
	}
	p.waiting = nil
	p.settleStep()
}

// follow moves to the parent of e.
func (p *pi) follow(at time.Time, e *piEntry) {
	if e.ID == "" || p.last == "" && e.ParentID == nil && e.Target == "" {
		return // version 1, or the first entry
	}
	parent := ""
	switch {
	case e.Type == "leaf":
		parent = e.Target
	case e.ParentID != nil:
		parent = *e.ParentID
	}
	if parent == p.last {
		return
	}
	if _, known := p.at[parent]; parent != "" && !known {
		p.b.in.note("line %d: the parent %q is not in the file; the previous entry is used instead", e.line, parent)
		return
	}
	p.settleStep()
	p.b.rewind(at, p.at[parent])
	p.waiting = nil
}

func (p *pi) message(at time.Time, e *piEntry, i int) {
	m := &e.Message
	p.messages++
	switch m.Role {
	case "system":
		p.messages--
		p.b.preamble(m.instructions())
		for _, tool := range m.Tools {
			p.b.tool(tool)
		}
	case "user", "custom", "hookMessage":
		p.user(at, e.line, piPieces(m.Content)...)
	case "assistant":
		p.replied(at, e, i)
	case "toolResult":
		id, _, _ := strings.Cut(m.ToolCallID, "|")
		res := piece{id: p.r.answers(id), failed: m.IsError || m.Details.ExitCode != 0}
		var texts []string
		for _, pc := range piPieces(m.Content) {
			switch pc.kind {
			case furl.KindText:
				texts = append(texts, pc.text)
			case furl.KindImage:
				res.images = append(res.images, pc.images...)
			}
		}
		res.text = strings.Join(texts, "\n")
		p.results[openclawResultKey(m)] = res
		p.waiting = slices.DeleteFunc(p.waiting, func(id string) bool { return id == res.id })
		p.result(at, e.line, res)
	case "bashExecution":
		if !m.Excluded {
			p.user(at, e.line, words(m.bash()))
		}
	case "branchSummary":
		p.user(at, e.line, words(fmt.Sprintf(piBranchSummary, m.Summary)))
	case "compactionSummary":
		p.user(at, e.line, words(fmt.Sprintf(piCompaction, m.Summary)))
	default:
		p.b.in.skip(e.line, "unknown role %q", m.Role)
	}
}

// maxOverlap is the number of earlier entries searched for a request.
const maxOverlap = 64

// overlapping finds replies that directly follow another reply: text sent
// while the model was busy caused a second request in parallel. That request
// was sent from the position in the conversation at its time.
func (p *pi) overlapping(entries []piEntry) {
	p.sent, p.early = map[int][]int{}, map[int]bool{}
	last := -1 // the previous message
	for i := range entries {
		if entries[i].Type != "message" {
			continue
		}
		m := &entries[i].Message
		if asked := milliTime(m.Timestamp); m.Role == "assistant" && !m.injected() && last >= 0 && entries[last].Message.Role == "assistant" &&
			!entries[last].Message.failed() && !asked.IsZero() {
			for j := last - 1; j >= max(0, last-maxOverlap); j-- {
				e := &entries[j]
				if e.Type == "message" && e.Message.Role != "assistant" && !milliTime(e.Message.Timestamp).After(asked) {
					p.sent[j], p.early[i] = append(p.sent[j], i), true
					break
				}
			}
		}
		last = i
	}
}

func (p *pi) request(at time.Time, m *piMessage) {
	p.reply(at, furl.Exchange{Model: m.Model, ResponseID: m.ResponseID, Stop: m.StopReason, Usage: m.Usage.usage()})
}

func (p *pi) replied(at time.Time, e *piEntry, i int) {
	m, line := &e.Message, e.line
	if !p.early[i] && !m.injected() {
		p.request(at, m)
	}
	pieces := piPieces(m.Content)
	if !m.failed() {
		p.assistant(at, line, pieces)
		for i := range pieces {
			if pieces[i].kind == furl.KindCall {
				p.waiting = append(p.waiting, pieces[i].id)
			}
		}
		return
	}
	sent := pieces
	if p.version > 1 {
		sent = nil
	} else {
		sent = slices.DeleteFunc(slices.Clone(pieces), func(pc piece) bool {
			return pc.kind == furl.KindCall && !p.answered[pc.id]
		})
	}
	if len(sent) < len(pieces) {
		p.aside(at, func() { p.assistant(at, line, pieces) })
	}
	if len(sent) > 0 {
		p.assistant(at, line, sent)
	}
}

// edit replaces an earlier entry in what is sent: a text in place of its own, or nothing. Failed replies are not
// sent anyway.
func (p *pi) edit(at time.Time, e *piEntry, entries []piEntry) {
	i, ok := p.index[e.Target]
	if !ok || entries[i].Type != "message" {
		p.b.in.skip(e.line, "context_edit of the unknown entry %q", e.Target)
		return
	}
	m := &entries[i].Message
	var text string
	if err := json.Unmarshal(e.Replacement, &text); err != nil {
		p.b.in.skip(e.line, "context_edit with a replacement of an unknown form")
		return
	}
	with := hiding{text: text}
	switch {
	case m.failed():
		return
	case m.Role == "toolResult":
		id, _, _ := strings.Cut(m.ToolCallID, "|")
		with.call = p.r.answers(id)
	default:
		with.of = p.at[e.Target]
	}
	p.b.mask(at, e.line, masking{reason: "pi replaced an entry", hide: []hiding{with}})
}

// compaction hides everything before the first kept entry.
func (p *pi) compaction(at time.Time, e *piEntry, i int) {
	last := p.b.last // the last one hidden; by default nothing is kept
	first, ok := p.index[e.FirstKept]
	if !ok {
		first = -1
	}
	if e.FirstKeptAt != nil {
		first = *e.FirstKeptAt
	}
	if first >= 0 && first < i {
		last = p.before[first]
	}
	if p.b.Compactions >= maxCuts {
		p.b.in.skip(e.line, "more than %d compactions", maxCuts)
		return
	}
	show, err := p.r.user([]piece{words(fmt.Sprintf(piCompaction, e.Summary))})
	if err != nil || e.Summary == "" {
		p.b.in.skip(e.line, "compaction without a summary")
		return
	}
	p.hideBefore(at, e.line, last, compaction{
		stage: "compact", reason: "pi compacted the conversation", show: show, before: e.TokensBefore,
		summary: &furl.Summary{Text: e.Summary, Model: p.b.Model, Usage: e.Usage.usage()},
	})
}

// hideBefore adds a reduction that hides the messages up to last.
func (p *pi) hideBefore(at time.Time, line int, last ref, cut compaction) {
	for _, r := range p.b.soFar() {
		if r <= last {
			cut.hide = append(cut.hide, r)
		}
	}
	p.b.compact(at, line, cut)
}
