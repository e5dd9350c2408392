package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/furlhq/furl"
)

// readTau2 reads results of tau2-bench: one JSON object whose simulations[]
// are runs, each a session, or one such run, an array of them, or one a line. A
// run contains the messages between the agent and the simulated user in the benchmark's form: calls
// have arguments that are objects, results are messages with the id of their
// call.
//
// The simulated user has its own tools. The agent does not see these calls,
// so they are skipped. The agent's first message was written by the benchmark
// and is not a reply. The policy is imported as the instructions; the
// template of the real instructions is not in the file.
func readTau2(in *input) ([]*Session, error) {
	var sessions []*Session
	if in.startsWith('[') {
		for _, raw := range in.elements(in.data, "") {
			sessions = append(sessions, tau2Run(in, object{}, raw))
		}
		return sessions, nil
	}
	file := objectOf(in.data)
	if !file.has("simulations") {
		for _, raw := range in.objects() {
			sessions = append(sessions, tau2Run(in, object{}, raw))
		}
		return sessions, nil
	}
	for _, raw := range in.elements(in.data, "simulations") {
		sessions = append(sessions, tau2Run(in, file.object("info"), raw))
	}
	return sessions, nil
}

type tau2Message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"` // of a result: the id of its call
	Requestor string          `json:"requestor"`
	Error     bool            `json:"error"`
	Timestamp string          `json:"timestamp"`
	Usage     *llmUsage       `json:"usage"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Requestor string          `json:"requestor"`
	} `json:"tool_calls"`
	// Several results at once, in some versions.
	Results []tau2Message `json:"tool_messages"`
}

func tau2Run(in *input, info object, raw []byte) *Session {
	run := objectOf(raw)
	model := info.object("agent_info").str("llm")
	s := newScribe(in, wireOf(model, furl.FormatChat), model)
	if id := run.str("id"); id != "" {
		s.b.ID = id
	} else if run.has("task_id") {
		s.b.ID = fmt.Sprintf("task %s trial %s", rawText(run["task_id"]), cmp.Or(rawText(run["trial"]), "0"))
	}
	s.system(time.Time{}, 0, info.object("environment_info").str("policy"))
	n := 0
	for i, raw := range in.elements(raw, "messages") {
		var m tau2Message
		if err := lenient(raw, &m); err != nil {
			in.skip(0, "session %s, message %d: %v", s.b.ID, i+1, err)
			continue
		}
		n++
		if !m.add(s, i == 0) {
			in.skip(0, "session %s, message %d: unknown role %q", s.b.ID, i+1, m.Role)
		}
	}
	out := s.finish()
	out.Messages = n
	return out
}

// add adds a message to a session; it returns false if the role is unknown.
func (m *tau2Message) add(s *scribe, first bool) bool {
	at := parseTime(m.Timestamp)
	switch m.Role {
	case "system":
		s.system(at, 0, joinWords(sweContent(m.Content)))
	case "user":
		s.user(at, 0, sweContent(m.Content)...)
	case "assistant":
		pieces := sweContent(m.Content)
		for _, c := range m.ToolCalls {
			pieces = append(pieces, piece{kind: furl.KindCall, id: c.ID, name: c.Name, args: c.Arguments})
		}
		if !first || m.Usage != nil {
			ex := furl.Exchange{Model: s.b.Model}
			if m.Usage != nil {
				ex.Usage = m.Usage.usage()
			}
			s.reply(at, ex)
		}
		s.assistant(at, 0, pieces)
	case "tool":
		for i := range m.Results {
			m.Results[i].add(s, false)
		}
		if len(m.Results) == 0 && m.Requestor != "user" {
			s.result(at, 0, piece{id: s.r.answers(m.ID), text: joinWords(sweContent(m.Content)), failed: m.Error})
		}
	default:
		return false
	}
	return true
}
