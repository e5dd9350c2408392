package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readSWEAgent reads a trajectory of SWE-agent: one JSON object with
// history[], the messages, and trajectory[], one entry per step. With
// function calling, calls are tool_calls and observations are tool messages.
// Without it, the command is in the assistant's text and the observation is a
// message of the user. SWE-agent uses Chat Completions, and Messages for
// Claude.
//
// A step may contain the list that was sent (query, or messages in some
// versions). Old observations that differ there from the history were masked
// by a history processor; they become recorded reductions.
//
// Times are not recorded, and usage only for the whole run.
func readSWEAgent(in *input) ([]*Session, error) {
	file := objectOf(in.data)
	model := sweModel(file)
	s := &sweAgent{scribe: newScribe(in, wireOf(model, furl.FormatChat), model), sent: map[int][]sweMessage{}}
	s.r.unflagged = true
	s.queries(file["trajectory"])
	var history []sweMessage
	for i, raw := range in.elements(in.data, "history") {
		var m sweMessage
		if err := lenient(raw, &m); err != nil {
			in.skip(0, "history %d: %v", i+1, err)
			continue
		}
		history = append(history, m)
	}
	for i := range history {
		s.message(i, history)
	}
	out := s.finish()
	out.Messages = len(history)
	return []*Session{out}, nil
}

type sweAgent struct {
	*scribe
	sent  map[int][]sweMessage // by length: lists that were sent
	refs  []ref                // per entry of the history
	calls []string             // per entry: the call whose result it is, by id on the wire
	masks map[int]string       // per entry: its replacement
}

type sweMessage struct {
	Role      string          `json:"role"`
	Type      string          `json:"message_type"` // of newer versions
	Content   json.RawMessage `json:"content"`
	Demo      bool            `json:"is_demo"`
	CallIDs   []string        `json:"tool_call_ids"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Thinking []struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	} `json:"thinking_blocks"`
}

// sweModel finds the model's name. A replayed run has none.
func sweModel(file object) string {
	config := file.object("replay_config")
	if file.kind("replay_config") == '"' {
		config = objectOf([]byte(file.str("replay_config")))
	}
	switch name := config.object("agent").object("model").str("name"); name {
	case "replay", "human", "human_thought", "instant_empty_submit":
		return ""
	default:
		return name
	}
}

// queries stores the lists that were sent, by length: the list as long as the
// history before a reply is the request of that reply.
func (s *sweAgent) queries(trajectory []byte) {
	var steps []struct {
		Query    []sweMessage `json:"query"`
		Messages []sweMessage `json:"messages"`
	}
	if lenient(trajectory, &steps) != nil {
		return // errors here do not affect the history
	}
	for _, st := range steps {
		for _, list := range [...][]sweMessage{st.Query, st.Messages} {
			if len(list) > 0 {
				s.sent[len(list)] = list
			}
		}
	}
}

func (s *sweAgent) message(i int, history []sweMessage) {
	m := &history[i]
	var at time.Time
	var r ref
	call := ""
	pieces := sweContent(m.Content)
	switch m.Role {
	case "system":
		s.system(at, 0, joinWords(pieces))
	case "user":
		if sweObserves(i, history) {
			r = s.observed(at, 0, false, pieces...)
		} else {
			r = s.user(at, 0, pieces...)
		}
	case "assistant":
		if !m.Demo {
			s.settle()
			s.masked(i, history)
			s.reply(at, furl.Exchange{Model: s.b.Model})
		}
		r = s.assistant(at, 0, m.pieces(pieces))
	case "tool":
		for _, id := range m.CallIDs {
			call = s.r.answers(id)
			s.result(at, 0, piece{id: call, text: joinWords(pieces)})
		}
	default:
		s.b.in.skip(0, "history %d: unknown role %q", i+1, m.Role)
	}
	s.refs, s.calls = append(s.refs, r), append(s.calls, call)
}

// sweObserves reports whether entry i of a history, a message of the user, is
// an observation: it follows a reply. Demonstrations are part of the prompt.
func sweObserves(i int, history []sweMessage) bool {
	m := &history[i]
	if i == 0 || m.Demo || m.Type != "" && m.Type != "observation" {
		return false
	}
	before := &history[i-1]
	return before.Role == "assistant" && !before.Demo && len(before.ToolCalls) == 0
}

// pieces adds calls and thinking to the text of an assistant message.
func (m *sweMessage) pieces(text []piece) []piece {
	var pieces []piece
	for _, t := range m.Thinking {
		p := piece{kind: furl.KindThinking, text: t.Thinking, signature: t.Signature}
		if t.Type == "redacted_thinking" {
			p.redacted, p.signature = true, t.Data
		}
		pieces = append(pieces, p)
	}
	pieces = append(pieces, text...)
	for _, c := range m.ToolCalls {
		pieces = append(pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Function.Name, args: c.Function.Arguments})
	}
	return pieces
}

// masked records where the list sent for reply i differs from earlier ones.
func (s *sweAgent) masked(i int, history []sweMessage) {
	list, ok := s.sent[i]
	if !ok {
		return
	}
	var m masking
	for j := range list {
		text := joinWords(sweContent(list[j].Content))
		if list[j].Role != history[j].Role || list[j].Role == "assistant" ||
			text == joinWords(sweContent(history[j].Content)) || text == s.masks[j] {
			continue
		}
		switch {
		case s.calls[j] != "":
			m.hide = append(m.hide, hiding{call: s.calls[j], text: text})
		case s.refs[j] != 0:
			m.hide = append(m.hide, hiding{of: s.refs[j], text: text})
		default:
			continue
		}
		if s.masks == nil {
			s.masks = map[int]string{}
		}
		s.masks[j] = text
	}
	if len(m.hide) > 0 {
		m.reason = "SWE-agent shortened old observations"
		s.b.mask(time.Time{}, 0, m)
	}
}

// sweContent reads a content: a string, or a list of parts.
func sweContent(raw json.RawMessage) []piece {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []piece{words(text)}
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	_ = lenient(raw, &parts) // content of another type has no parts
	var pieces []piece
	for _, p := range parts {
		switch p.Type {
		case "text":
			pieces = append(pieces, words(p.Text))
		case "image_url":
			if pic, ok := dataPicture("image/png", p.ImageURL.URL); ok {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
		}
	}
	return pieces
}

// joinWords joins the text among pieces.
func joinWords(pieces []piece) string {
	var texts []string
	for _, p := range pieces {
		if p.kind == furl.KindText {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n")
}
