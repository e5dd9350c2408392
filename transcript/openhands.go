package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// ohForgotten replaces events that were dropped without a summary.
const ohForgotten = "[Events before this point were forgotten.]"

// readOpenHands reads OpenHands events. The file is JSON Lines with one run
// per line, whose history[] contains the events, or pairs of an action and its
// observation; one such object, or an array of them; an object with the events
// in trajectory[], events[] or items[], as the API gives it; an array of events;
// or one event a line. openHandsSDKRun reads events of version 1 and
// later. In earlier versions, actions carry the model's response in
// tool_call_metadata; several actions of one response form one reply.
// Observations name their action by cause and carry the call's id.
//
// OpenHands uses Chat Completions through LiteLLM, and Messages for Claude.
// The text that it adds around an observation is rendered as its
// ConversationMemory does; the templates around recalled knowledge are
// approximated.
func readOpenHands(in *input) ([]*Session, error) {
	var sessions []*Session
	var loose [][]byte // events outside runs
	if in.startsWith('[') {
		for _, rec := range in.elements(in.data, "") {
			if run := objectOf(rec); !isOpenHandsEvent(run) && ohList(run) != "" {
				sessions = append(sessions, openHandsRun(in, 0, run, in.elements(rec, ohList(run))))
				continue
			}
			loose = append(loose, rec)
		}
		if len(loose) > 0 {
			sessions = append(sessions, openHandsRun(in, 0, object{}, loose))
		}
		return sessions, nil
	}
	for n, rec := range in.objects() {
		run := objectOf(rec)
		if isOpenHandsEvent(run) {
			loose = append(loose, rec)
			continue
		}
		list := ohList(run)
		if list == "" && run.kind("history") == '[' {
			list = "history"
		}
		if list == "" {
			in.skip(n, "expected a run: the field history is missing")
			continue
		}
		sessions = append(sessions, openHandsRun(in, n, run, in.elements(rec, list)))
	}
	if len(loose) > 0 {
		sessions = append(sessions, openHandsRun(in, 0, object{}, loose))
	}
	return sessions, nil
}

type openHands struct {
	*scribe
	line        int
	reply       string          // id of the response being read, "" once it is added
	newestReply string          // id of the newest response
	pieces      []piece         // of that response
	at          time.Time       // of its first action
	acts        []int           // ids of its actions
	known       map[string]bool // recalled knowledge that was sent
	total       ohTokens        // accumulated so far
	waiting     int             // calls without result
	after       []func()        // functions that wait until no call is open
	where       map[int]ref     // event id → its message
	plain       map[int]bool    // ids of actions without a call
}

type ohTokens struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Read       int `json:"cache_read_tokens"`
	Write      int `json:"cache_write_tokens"`
}

// since converts the difference to the earlier accumulated counts. Prompt
// tokens include those of the cache.
func (t ohTokens) since(old ohTokens) furl.Usage {
	read, write := max(0, t.Read-old.Read), max(0, t.Write-old.Write)
	return furl.Usage{
		Input: max(0, t.Prompt-old.Prompt-read-write), CacheRead: read, CacheWrite: write,
		Output: max(0, t.Completion-old.Completion),
	}
}

type ohEvent struct {
	ID          int             `json:"id"`
	Timestamp   string          `json:"timestamp"`
	Source      string          `json:"source"`
	Cause       int             `json:"cause"`
	Action      string          `json:"action"`
	Observation string          `json:"observation"`
	Content     string          `json:"content"`
	Args        json.RawMessage `json:"args"`
	Extras      json.RawMessage `json:"extras"`
	Success     *bool           `json:"success"`
	Call        *struct {
		ID       string          `json:"tool_call_id"`
		Response json.RawMessage `json:"model_response"`
	} `json:"tool_call_metadata"`
	Metrics struct {
		Tokens ohTokens `json:"accumulated_token_usage"`
	} `json:"llm_metrics"`
}

// ohResponse is a Chat Completions response in LiteLLM's form.
type ohResponse struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message struct {
			Content   json.RawMessage `json:"content"`
			Reasoning string          `json:"reasoning_content"`
			Thinking  []struct {
				Thinking  string `json:"thinking"`
				Signature string `json:"signature"`
			} `json:"thinking_blocks"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string          `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Write int `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

func openHandsRun(in *input, line int, run object, raws [][]byte) *Session {
	for _, raw := range raws[:min(len(raws), probeObjects)] {
		if isOHSDK(objectOf(raw)) {
			return openHandsSDKRun(in, line, run, raws)
		}
	}
	var events []ohEvent
	var models []string
	for i, raw := range raws {
		var pair []ohEvent
		err := ohPair(raw, i, &pair)
		if err != nil {
			in.skip(line, "event %d: %v", i+1, err)
			continue
		}
		for _, e := range pair {
			if e.Call != nil {
				models = append(models, objectOf(e.Call.Response).str("model"))
			}
			events = append(events, e)
		}
	}
	model := commonModel(models)
	if model == "" {
		model = run.object("metadata").object("llm_config").str("model")
	}
	o := &openHands{
		scribe: newScribe(in, wireOf(model, furl.FormatChat), model), line: line,
		known: map[string]bool{}, where: map[int]ref{}, plain: map[int]bool{},
	}
	o.b.ID = run.str("instance_id")
	for i := range events {
		if e := &events[i]; e.Action != "" {
			o.action(e)
		} else if e.Observation != "" {
			o.observation(e)
		}
	}
	o.flushReply()
	o.settle()
	o.release()
	s := o.finish()
	s.Messages = len(raws)
	return s
}

// ohPair decodes element i of a list of events: an event, or an action and its
// observation in the output of evaluations until 2025. The oldest of these have
// no ids.
func ohPair(raw []byte, i int, pair *[]ohEvent) error {
	if rawjson.NewReader(raw).Kind() != '[' {
		*pair = make([]ohEvent, 1)
		return lenient(raw, &(*pair)[0])
	}
	if err := lenient(raw, pair); err != nil {
		return err
	}
	for j, raw := range listOf(raw) {
		if j >= len(*pair) || objectOf(raw).has("id") {
			continue
		}
		e := &(*pair)[j]
		e.ID = ohUnnumbered + 2*i + j
		if e.Observation != "" && e.Cause == 0 && j > 0 {
			e.Cause = (*pair)[j-1].ID
		}
	}
	return nil
}

// ohUnnumbered is above the ids in any file that is read.
const ohUnnumbered = 1 << 30

// flushReply adds the reply that was read.
func (o *openHands) flushReply() {
	if o.reply == "" {
		return
	}
	r := o.assistant(o.at, o.line, o.pieces)
	for _, id := range o.acts {
		o.where[id] = r
	}
	for i := range o.pieces {
		if o.pieces[i].kind == furl.KindCall {
			o.waiting++
		}
	}
	o.reply, o.pieces, o.acts = "", nil, nil
}

// later runs f once no call is open: text between a call and its result is
// added after the result.
func (o *openHands) later(f func()) {
	if o.waiting > 0 {
		o.after = append(o.after, f)
		return
	}
	f()
}

func (o *openHands) release() {
	for _, f := range o.after {
		f()
	}
	o.after = nil
}

func (o *openHands) action(e *ohEvent) {
	at := parseTime(e.Timestamp)
	args := objectOf(e.Args)
	if e.Call != nil {
		o.addCall(at, e)
		return
	}
	switch {
	case e.Action == "system":
		o.system(at, o.line, args.str("content"))
		for _, tool := range listOf(args["tools"]) {
			o.b.tool(tool)
		}
	case e.Action == "message" && e.Source == "user":
		o.addUser(at, e.ID, ohMessage(args)...)
	case e.Action == "message" || e.Action == "finish" && e.Source == "agent":
		o.addReply(at, e, args)
	case e.Action == "run" && e.Source == "user":
		o.addUser(at, e.ID, words("User executed the command:\n"+args.str("command")))
	case e.Action == "condensation":
		o.condensed(at, args)
	case e.Source == "agent" && ohActions[e.Action]:
		o.plain[e.ID] = true
		o.addReply(at, e, args)
	}
}

// addUser adds text of the user.
func (o *openHands) addUser(at time.Time, id int, pieces ...piece) {
	o.flushReply()
	o.later(func() { o.where[id] = o.user(at, o.line, pieces...) })
}

// addObservation adds the output of an action without a call.
func (o *openHands) addObservation(at time.Time, id int, failed bool, text string) {
	o.flushReply()
	o.later(func() { o.where[id] = o.observed(at, o.line, failed, words(text)) })
}

// addReply adds a reply without a call.
func (o *openHands) addReply(at time.Time, e *ohEvent, args object) {
	text := args.str("content")
	switch {
	case o.plain[e.ID]:
		text = ohActionText(e.Action, args)
	case text == "":
		text = args.str("thought")
	}
	if text == "" {
		return
	}
	o.flushReply()
	o.waiting = 0
	o.settle()
	o.release()
	o.scribe.reply(at, furl.Exchange{Model: o.b.Model, Usage: e.Metrics.Tokens.since(o.total)})
	o.count(e)
	o.where[e.ID] = o.assistant(at, o.line, []piece{words(text)})
}

func (o *openHands) count(e *ohEvent) {
	if e.Metrics.Tokens.Prompt > o.total.Prompt {
		o.total = e.Metrics.Tokens
	}
}

// addCall reads an action that resulted from a call.
func (o *openHands) addCall(at time.Time, e *ohEvent) {
	var r ohResponse
	if err := lenient(e.Call.Response, &r); err != nil || len(r.Choices) == 0 {
		o.b.in.skip(o.line, "event %d: no model response", e.ID)
		return
	}
	if r.ID == "" {
		r.ID = fmt.Sprintf("event %d", e.ID)
	}
	if r.ID == o.newestReply { // another action of the same reply
		if o.reply != "" {
			o.acts = append(o.acts, e.ID)
		}
		return
	}
	o.flushReply()
	o.waiting = 0 // calls still open are left to the builder
	o.settle()
	o.release()
	read, write := r.Usage.Details.Cached, r.Usage.Write
	usage := furl.Usage{
		Input: max(0, r.Usage.Prompt-read-write), CacheRead: read, CacheWrite: write,
		Output: r.Usage.Completion, Reasoning: r.Usage.OutputDetails.Reasoning,
	}
	if usage == (furl.Usage{}) {
		usage = e.Metrics.Tokens.since(o.total)
	}
	o.count(e)
	msg := &r.Choices[0].Message
	o.scribe.reply(at, furl.Exchange{Model: r.Model, ResponseID: r.ID, Usage: usage, Stop: r.Choices[0].Finish})
	o.reply, o.newestReply, o.at, o.acts = r.ID, r.ID, at, []int{e.ID}
	for _, t := range msg.Thinking {
		o.pieces = append(o.pieces, piece{kind: furl.KindThinking, text: t.Thinking, signature: t.Signature})
	}
	if len(msg.Thinking) == 0 && msg.Reasoning != "" {
		o.pieces = append(o.pieces, piece{kind: furl.KindThinking, text: msg.Reasoning})
	}
	o.pieces = append(o.pieces, sweContent(msg.Content)...)
	for _, c := range msg.ToolCalls {
		o.pieces = append(o.pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Function.Name, args: c.Function.Arguments})
	}
}

func (o *openHands) observation(e *ohEvent) {
	at := parseTime(e.Timestamp)
	text, failed := ohWords(e)
	if e.Call != nil {
		o.flushReply()
		o.waiting = max(0, o.waiting-1)
		o.result(at, o.line, piece{id: o.r.answers(e.Call.ID), text: text, failed: failed})
		if o.waiting == 0 {
			o.settle()
			o.release()
		}
		return
	}
	switch e.Observation {
	case "null":
		return
	case "recall":
		text = o.recalled(objectOf(e.Extras))
	case "error", "user_rejected":
		if o.plain[e.Cause] {
			o.addObservation(at, e.ID, failed, text)
			return
		}
	default:
		switch {
		case o.plain[e.Cause]:
			o.addObservation(at, e.ID, failed, "OBSERVATION:\n"+text)
			return
		case e.Observation == "run":
			text = "\nObserved result of command executed by user:\n" + text
		default:
			return // agent_state_changed and similar events are not sent
		}
	}
	if text != "" {
		o.addUser(at, e.ID, words(text))
	}
}

// condensed records that OpenHands dropped events, and what it sends instead.
func (o *openHands) condensed(at time.Time, args object) {
	o.flushReply()
	o.settle()
	if o.b.Compactions >= maxCuts {
		o.b.in.skip(o.line, "more than %d condensations", maxCuts)
		return
	}
	forgotten := map[int]bool{}
	var ids []int
	_ = lenient(args["forgotten_event_ids"], &ids)
	for _, id := range ids {
		forgotten[id] = true
	}
	from, to := args.num("forgotten_events_start_id"), args.num("forgotten_events_end_id")
	summary := args.str("summary")
	show, err := o.r.user([]piece{words(summary)})
	cut := compaction{stage: "compact", reason: "OpenHands condensed its history", summary: &furl.Summary{Text: summary, Model: o.b.Model}}
	if summary == "" {
		show, err = o.r.user([]piece{words(ohForgotten)})
		cut.stage, cut.summary = "truncate", nil
	}
	if err != nil {
		o.b.in.skip(o.line, "condensation: %v", err)
		return
	}
	cut.show = show
	for id, r := range o.where {
		if r != 0 && (forgotten[id] || to > 0 && id >= from && id <= to) {
			cut.hide = append(cut.hide, r)
		}
	}
	slices.Sort(cut.hide)
	o.b.compact(at, o.line, cut)
}
