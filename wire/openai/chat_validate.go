package openai

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// maxCalls is the maximum number of calls in one assistant message.
const maxCalls = 128

// Validate checks a request against the rules of Chat Completions. It returns
// nil, or a *protocol.Refusal with the provider's text. The rules on pairs are
// checked on the decoded messages. Those on the form of the body, such as the
// type of arguments, need req.Body and are checked if it is set.
//
// More cache breakpoints than the provider's maximum are not an error: it
// uses the latest ones.
func (chat) Validate(req *protocol.Request, m furl.Model) error {
	if req.Body != nil {
		if err := validChatBody(req); err != nil {
			return err
		}
	}
	if len(req.Messages) == 0 {
		return emptyArray("messages")
	}
	if n := len(req.Messages); m.MaxMessages > 0 && n > m.MaxMessages {
		return longArray("messages", m.MaxMessages, n)
	}
	if err := validPairs(req.Messages); err != nil {
		return err
	}
	return nil
}

// chatPairs tracks the calls of the newest assistant message.
type chatPairs struct {
	calls    []string       // ids in order; empty if no results are expected
	answered map[string]int // ids to the messages that answered them
}

func validPairs(messages []furl.Message) *protocol.Refusal {
	var p chatPairs
	for i := range messages {
		m := &messages[i]
		if r := validChatMessage(i, m); r != nil {
			return r
		}
		if m.Role == furl.RoleTool {
			if r := p.answer(i, m); r != nil {
				return r
			}
			continue
		}
		if r := p.close(fmt.Sprintf("messages.[%d].role", i)); r != nil {
			return r
		}
		p.open(m)
	}
	return p.close("messages")
}

func validChatMessage(i int, m *furl.Message) *protocol.Refusal {
	switch m.Role {
	case furl.RoleSystem, furl.RoleDeveloper, furl.RoleUser, furl.RoleAssistant, furl.RoleTool:
	default:
		return refuse("invalid_value", fmt.Sprintf("messages[%d].role", i),
			"Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	if m.Role == furl.RoleUser {
		return nil
	}
	for b := range m.Blocks {
		for _, media := range m.Blocks[b].Media {
			if media.Kind == furl.KindImage {
				return refuse("invalid_value", fmt.Sprintf("messages.[%d]", i),
					"Invalid 'messages[%d]'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", i, m.Role)
			}
		}
	}
	return nil
}

// open starts to expect results for m's calls. The legacy function_call has
// no id and is not checked.
func (p *chatPairs) open(m *furl.Message) {
	p.calls, p.answered = p.calls[:0], nil
	for b := range m.Blocks {
		if bl := &m.Blocks[b]; bl.Kind == furl.KindCall && !isLegacy(bl.ID) {
			p.calls = append(p.calls, bl.ID)
		}
	}
}

func isLegacy(id string) bool { return strings.HasPrefix(id, functionID("")) }

// answer handles the tool message i.
func (p *chatPairs) answer(i int, m *furl.Message) *protocol.Refusal {
	for b := range m.Blocks {
		bl := &m.Blocks[b]
		if bl.Kind != furl.KindResult || isLegacy(bl.ID) {
			continue
		}
		param := fmt.Sprintf("messages.[%d].tool_call_id", i)
		if len(p.calls) == 0 {
			return refuse("", fmt.Sprintf("messages.[%d].role", i),
				"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		}
		if bl.ID == "" {
			return refuse("", param, "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
		}
		if first, twice := p.answered[bl.ID]; twice {
			return refuse("", param, "Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].", bl.ID, first, i)
		}
		found := false
		for _, id := range p.calls {
			found = found || id == bl.ID
		}
		if !found {
			return refuse("", param, "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", bl.ID)
		}
		if p.answered == nil {
			p.answered = make(map[string]int, len(p.calls))
		}
		p.answered[bl.ID] = i
	}
	return nil
}

// close ends the expectation of results. param is the provider's: the message
// at the position of a missing result, or the whole list if it ends too
// early.
func (p *chatPairs) close(param string) *protocol.Refusal {
	var missing []string
	for _, id := range p.calls {
		if _, ok := p.answered[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refuse("", param, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
		"The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
}

// validChatBody checks the rules that need the bytes.
func validChatBody(req *protocol.Request) error {
	f, err := readBody(req.Body, "messages")
	switch {
	case err != nil:
		return notJSON()
	case f.list == 0:
		return refuse("missing_required_parameter", "messages", "Missing required parameter: 'messages'.")
	case f.list != '[':
		return wrongType("messages", "an array of objects", f.list)
	case f.cacheKey != nil:
		return f.cacheKey
	}
	var s chatScan
	for i := range req.Messages {
		raw := req.Messages[i].Raw
		if raw == nil {
			continue
		}
		s.read(raw, rawjson.NewReader(raw))
		if r := s.validForm(i, raw); r != nil {
			return r
		}
	}
	return nil
}

func (s *chatScan) validForm(i int, raw []byte) *protocol.Refusal {
	spoken := s.content.kind == '"' || s.content.kind == '['
	if !spoken && s.content.kind != 0 && s.content.kind != 'n' {
		return wrongType(fmt.Sprintf("messages[%d].content", i), "one of a string or array of objects", s.content.kind)
	}
	if s.callList.kind == '[' && len(s.calls) == 0 {
		return emptyArray(fmt.Sprintf("messages[%d].tool_calls", i))
	}
	if n := len(s.calls); n > maxCalls {
		return longArray(fmt.Sprintf("messages[%d].tool_calls", i), maxCalls, n)
	}
	for j := range s.calls {
		c := &s.calls[j]
		if c.args.kind == '"' || c.args.kind == 0 && c.typ != "function" {
			continue
		}
		name := "function.arguments"
		if c.free {
			name = "custom.input"
		}
		param := fmt.Sprintf("messages[%d].tool_calls[%d].%s", i, j, name)
		if c.args.kind == 0 {
			return refuse("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
		}
		return wrongType(param, "a string", c.args.kind)
	}
	answers := len(s.calls) > 0 || s.function.present || s.audio.kind == '{' || s.refusal.kind == '"'
	if !spoken && !(s.role == "assistant" && answers) && s.role != "function" {
		return refuse("", fmt.Sprintf("messages.[%d].content", i), "Invalid value for 'content': expected a string, got null.")
	}
	return nil
}
