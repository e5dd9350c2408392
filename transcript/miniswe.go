package transcript

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readMiniSWE reads a trajectory of mini-swe-agent: one JSON object whose
// messages[] are messages of Chat Completions in LiteLLM's form, each with an
// "extra" object: the response of a reply, and times since version 2. Since
// version 2 a reply may also be a whole response of the Responses API, and
// the output of a command an item of that API.
//
// Commands are in the text of a reply, and their output is a message of the
// user, or they are calls since version 2. The last
// message, with the role exit, is the agent's note about how the run ended.
func readMiniSWE(in *input) ([]*Session, error) {
	file := objectOf(in.data)
	model := file.object("info").object("config").object("model").str("model_name")
	s := newScribe(in, wireOf(model, furl.FormatChat), model)
	s.b.ID = file.str("instance_id")
	n, before := 0, ""
	for i, raw := range in.elements(in.data, "messages") {
		var m miniMessage
		if err := lenient(raw, &m); err != nil {
			in.skip(0, "message %d: %v", i+1, err)
			continue
		}
		if m.Role != "exit" {
			n++
		}
		if !m.add(s, before) {
			in.skip(0, "message %d: unknown role %q", i+1, m.Role)
		}
		before = m.Role
		if m.Object == "response" {
			before = "assistant"
		}
	}
	out := s.finish()
	out.Messages = n
	return []*Session{out}, nil
}

type miniMessage struct {
	sweMessage
	CallID    string `json:"tool_call_id"`
	Reasoning string `json:"reasoning_content"`
	Extra     struct {
		Timestamp float64      `json:"timestamp"` // Unix seconds
		Response  miniResponse `json:"response"`
		Failed    json.Number  `json:"returncode"`
		// Interrupt says why a message of the user is not an observation;
		// Actions are the commands of a person.
		Interrupt string            `json:"interrupt_type"`
		Actions   []json.RawMessage `json:"actions"`
	} `json:"extra"`

	// Of the Responses API.
	Type   string `json:"type"`
	ItemOf string `json:"call_id"`
	Result string `json:"output"`
	miniResponse
}

type miniResponse struct {
	Object string       `json:"object"`
	ID     string       `json:"id"`
	Model  string       `json:"model"`
	Usage  llmUsage     `json:"usage"`
	Items  []miniOutput `json:"output"`
}

// miniOutput is an item of a response.
type miniOutput struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// llmUsage is usage in LiteLLM's form: of either of OpenAI's APIs, with
// Anthropic's counters added.
type llmUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Write      int `json:"cache_creation_input_tokens"`
	Read       int `json:"cache_read_input_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage converts the counts: the prompt includes the tokens read from and
// written to the cache.
func (u llmUsage) usage() furl.Usage {
	prompt := max(u.Prompt, u.Input)
	read := min(prompt, max(u.Details.Cached, u.InputDetails.Cached, u.Read))
	write := min(prompt-read, u.Write)
	return furl.Usage{
		Input: prompt - read - write, CacheRead: read, CacheWrite: write,
		Output: max(u.Completion, u.Output), Reasoning: u.OutputDetails.Reasoning,
	}
}

// add adds a message to a session; before is the role of the message before it.
// It returns false if the role is unknown.
func (m *miniMessage) add(s *scribe, before string) bool {
	at := milliTime(m.Extra.Timestamp * 1000)
	pieces := sweContent(m.Content)
	failed := m.Extra.Failed != "" && m.Extra.Failed != "0"
	switch {
	case m.Object == "response":
		m.replied(s, at, m.miniResponse, m.items())
	case m.Type == "function_call_output":
		s.result(at, 0, piece{id: s.r.answers(m.ItemOf), text: m.Result, failed: failed})
	case m.Role == "system":
		s.system(at, 0, joinWords(pieces))
	case m.Role == "user" && m.observes(before, joinWords(pieces)):
		s.observed(at, 0, failed || m.Extra.Interrupt == miniFormatError || miniFailed(joinWords(pieces)), pieces...)
	case m.Role == "user":
		s.user(at, 0, pieces...)
	case m.Role == "assistant":
		all := m.pieces(pieces)
		if len(m.Thinking) == 0 && m.Reasoning != "" {
			all = append([]piece{{kind: furl.KindThinking, text: m.Reasoning}}, all...)
		}
		m.replied(s, at, m.Extra.Response, all)
	case m.Role == "tool":
		s.result(at, 0, piece{id: s.r.answers(m.CallID), text: joinWords(pieces), failed: failed})
	case m.Role == "exit":
	default:
		return false
	}
	return true
}

// miniFormatError is the interrupt_type of the message that tells the model
// that it wrote no command.
const miniFormatError = "FormatError"

// miniPeople start the messages in which mini-swe-agent passes on words of a
// person. Version 1 marks them in no other way.
var miniPeople = []string{
	"Command not executed. ", "Commands not executed. ", "Interrupted by user: ",
	"The user added a new task: ", "Switched to human mode.", "User command: ",
}

// observes reports whether a message of the user is the output of the command
// in the reply before it.
func (m *miniMessage) observes(before, text string) bool {
	switch {
	case m.Extra.Interrupt != "" || len(m.Extra.Actions) > 0:
		return m.Extra.Interrupt == miniFormatError
	case m.Extra.Failed != "":
		return true
	}
	return before == "assistant" && !slices.ContainsFunc(miniPeople, func(head string) bool { return strings.HasPrefix(text, head) })
}

// miniFailed reports whether an observation starts with an exit code other
// than zero, as the default template has it.
func miniFailed(text string) bool {
	code, ok := strings.CutPrefix(text, "<returncode>")
	code, _, end := strings.Cut(code, "</returncode>")
	n, err := strconv.Atoi(code)
	return ok && end && err == nil && n != 0
}

func (m *miniMessage) replied(s *scribe, at time.Time, r miniResponse, pieces []piece) {
	ex := furl.Exchange{Model: s.b.Model, ResponseID: r.ID, Usage: r.Usage.usage()}
	if r.Model != "" {
		ex.Model = r.Model
	}
	s.reply(at, ex)
	s.assistant(at, 0, pieces)
}

// items returns the pieces of a reply that is a whole response.
func (m *miniMessage) items() (pieces []piece) {
	for _, it := range m.Items {
		switch it.Type {
		case "message":
			for _, c := range it.Content {
				pieces = append(pieces, words(c.Text))
			}
		case "function_call":
			pieces = append(pieces, piece{kind: furl.KindCall, id: it.CallID, name: it.Name, args: it.Arguments})
		}
	}
	return pieces
}
