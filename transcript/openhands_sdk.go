package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// Events of OpenHands since version 1, whose agent is its SDK. Each event
// names its type in kind, has a text as id, and contains one call or one
// result. Actions of one response share llm_response_id. The events do not
// contain usage.

// isOHSDK reports whether an object is such an event.
func isOHSDK(o object) bool {
	return o.has("id", "source", "timestamp") && (strings.HasSuffix(o.str("kind"), "Event") || strings.HasSuffix(o.str("kind"), "Observation") || strings.HasPrefix(o.str("kind"), "Condensation"))
}

type ohSDKEvent struct {
	Kind      string `json:"kind"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Source    string `json:"source"`
	Response  string `json:"llm_response_id"`

	System json.RawMessage `json:"system_prompt"`
	Tools  json.RawMessage `json:"tools"`

	Message  ohSDKMessage    `json:"llm_message"`
	Extended json.RawMessage `json:"extended_content"`

	Thought   json.RawMessage `json:"thought"`
	Reasoning string          `json:"reasoning_content"`
	Thinking  []ohSDKThinking `json:"thinking_blocks"`
	CallID    string          `json:"tool_call_id"`
	Call      struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Function  struct {        // in the first versions
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_call"`

	Observation json.RawMessage `json:"observation"`
	Rejected    string          `json:"rejection_reason"`
	Error       string          `json:"error"`

	Forgotten []string `json:"forgotten_event_ids"`
	Summary   string   `json:"summary"`
}

type ohSDKMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning string          `json:"reasoning_content"`
	Thinking  []ohSDKThinking `json:"thinking_blocks"`
}

type ohSDKThinking struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Data      string `json:"data"`
}

// ohSDK reads such events into a session.
type ohSDK struct {
	*scribe
	line  int
	reply string // id of the response that the pieces belong to
	at    time.Time
	said  []piece
	ids   []string       // of their events
	where map[string]ref // event id → its message
}

func openHandsSDKRun(in *input, line int, run object, raws [][]byte) *Session {
	model := run.object("metadata").object("llm").str("model")
	if model == "" {
		model = objectOf(in.beside("../base_state.json")).object("agent").object("llm").str("model")
	}
	o := &ohSDK{scribe: newScribe(in, wireOf(model, furl.FormatChat), model), line: line, where: map[string]ref{}}
	o.b.ID = run.str("instance_id")
	for i, raw := range raws {
		var e ohSDKEvent
		if err := lenient(raw, &e); err != nil {
			in.skip(line, "event %d: %v", i+1, err)
			continue
		}
		o.event(&e)
	}
	o.flushReply()
	s := o.finish()
	s.Messages = len(raws)
	return s
}

func (o *ohSDK) event(e *ohSDKEvent) {
	at := parseTime(e.Timestamp)
	switch e.Kind {
	case "SystemPromptEvent":
		o.system(at, o.line, joinWords(ohSDKContent(e.System)))
		for _, tool := range listOf(e.Tools) {
			o.b.tool(tool)
		}
	case "MessageEvent":
		o.flushReply()
		if e.Message.Role == "assistant" {
			o.begin(at, e, ohSDKThoughts(e.Message.Thinking, e.Message.Reasoning))
			o.said = append(o.said, ohSDKContent(e.Message.Content)...)
			o.flushReply()
			return
		}
		o.where[e.ID] = o.user(at, o.line, append(ohSDKContent(e.Message.Content), ohSDKContent(e.Extended)...)...)
	case "ActionEvent":
		o.action(at, e)
	case "ObservationEvent":
		ob := objectOf(e.Observation)
		pieces := append(ohSDKContent(ob["content"]), ohSDKContent(e.Extended)...)
		if !ob.has("content") {
			pieces = append(pieces, words(ob.str("output")+ob.str("message")))
		}
		code := ob.num("exit_code")
		o.outcome(at, e, pieces, ob.flag("is_error") || ob.flag("error") || code != 0 && code != -1)
	case "UserRejectObservation":
		o.outcome(at, e, []piece{words("Action rejected: " + e.Rejected)}, true)
	case "AgentErrorEvent":
		o.outcome(at, e, []piece{words(e.Error)}, true)
	case "Condensation":
		o.condensed(at, e)
	}
}

// begin announces a reply.
func (o *ohSDK) begin(at time.Time, e *ohSDKEvent, thinking []piece) {
	o.scribe.reply(at, furl.Exchange{Model: o.b.Model, ResponseID: e.Response})
	o.reply, o.at, o.said, o.ids = e.Response, at, thinking, []string{e.ID}
}

func (o *ohSDK) action(at time.Time, e *ohSDKEvent) {
	if len(o.ids) == 0 || e.Response == "" || e.Response != o.reply {
		o.flushReply()
		o.begin(at, e, ohSDKThoughts(e.Thinking, e.Reasoning))
	} else {
		o.ids = append(o.ids, e.ID)
	}
	o.said = append(o.said, ohSDKContent(e.Thought)...)
	c := piece{kind: furl.KindCall, id: e.CallID, name: e.Call.Name, args: e.Call.Arguments}
	if c.name == "" {
		c.name, c.args = e.Call.Function.Name, e.Call.Function.Arguments
	}
	o.said = append(o.said, c)
}

// flushReply adds the reply that was read.
func (o *ohSDK) flushReply() {
	if len(o.ids) == 0 {
		return
	}
	r := o.assistant(o.at, o.line, o.said)
	for _, id := range o.ids {
		o.where[id] = r
	}
	o.said, o.ids = nil, nil
}

func (o *ohSDK) outcome(at time.Time, e *ohSDKEvent, pieces []piece, failed bool) {
	o.flushReply()
	p := piece{id: o.r.answers(e.CallID), text: joinWords(pieces), failed: failed}
	for i := range pieces {
		p.images = append(p.images, pieces[i].images...)
	}
	o.result(at, o.line, p)
}

// condensed records that OpenHands dropped events, and what it sends instead.
func (o *ohSDK) condensed(at time.Time, e *ohSDKEvent) {
	o.flushReply()
	o.settle()
	if o.b.Compactions >= maxCuts {
		o.b.in.skip(o.line, "more than %d condensations", maxCuts)
		return
	}
	cut := compaction{stage: "compact", reason: "OpenHands condensed its history", summary: &furl.Summary{Text: e.Summary, Model: o.b.Model}}
	if e.Summary == "" {
		e.Summary, cut.stage, cut.summary = ohForgotten, "truncate", nil
	}
	var err error
	if cut.show, err = o.r.user([]piece{words(e.Summary)}); err != nil {
		o.b.in.skip(o.line, "condensation: %v", err)
		return
	}
	for _, id := range e.Forgotten {
		if r := o.where[id]; r != 0 {
			cut.hide = append(cut.hide, r)
		}
	}
	o.b.compact(at, o.line, cut)
}

// ohSDKContent reads a content: a text, one part, or a list of parts.
func ohSDKContent(raw json.RawMessage) []piece {
	if o := objectOf(raw); o.has("text") {
		return []piece{words(o.str("text"))}
	}
	pieces := sweContent(raw)
	var parts []struct {
		URLs []string `json:"image_urls"`
	}
	_ = lenient(raw, &parts) // a text has none
	for _, p := range parts {
		for _, url := range p.URLs {
			if pic, ok := dataPicture("image/png", url); ok {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
		}
	}
	return pieces
}

func ohSDKThoughts(blocks []ohSDKThinking, reasoning string) (pieces []piece) {
	for _, t := range blocks {
		p := piece{kind: furl.KindThinking, text: t.Thinking, signature: t.Signature}
		if t.Data != "" {
			p.redacted, p.signature = true, t.Data
		}
		pieces = append(pieces, p)
	}
	if len(pieces) == 0 && reasoning != "" {
		pieces = append(pieces, piece{kind: furl.KindThinking, text: reasoning})
	}
	return pieces
}
